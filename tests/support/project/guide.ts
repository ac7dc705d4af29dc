import { existsSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { PROJECT_ROOT, projectFiles, readProjectFile } from './project-files.js';

/* The README and the pages of the guide, cut into parts that tests compare with the source. */

/** All pages for users and contributors, without the pages beside the code. */
export const PAGES: readonly string[] = [
  ...['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'bench/README.md'],
  ...projectFiles('docs', '.md'),
].filter((path) => existsSync(join(PROJECT_ROOT, path)));

const texts = new Map(PAGES.map((path) => [path, readProjectFile(path)]));

export function page(path: string): string {
  const text = texts.get(path);
  if (text === undefined) throw new Error(`the guide has no page ${path}`);
  return text;
}

/** All pages, one after the other. */
export const guide = [...texts.values()].join('\n');

export interface Snippet {
  readonly page: string;
  readonly language: string;
  readonly code: string;
  /** Line number of the first line, from 1. */
  readonly line: number;
  /** The reason why the snippet is only type-checked: `<!-- type-checked only: reason -->` above it. */
  readonly notRun: string | undefined;
}

const FENCED = /(?:^<!-- type-checked only: (.+) -->\n)?^```(\w+)\n([\s\S]*?)^```$/gm;

export function snippets(...languages: string[]): Snippet[] {
  return [...texts].flatMap(([path, text]) =>
    [...text.matchAll(FENCED)]
      .map(({ 0: all, 1: notRun, 2: language = '', 3: code = '', index }) => {
        const before = index + all.indexOf('```');
        return { page: path, language, code, notRun, line: text.slice(0, before).split('\n').length + 1 };
      })
      .filter(({ language }) => languages.includes(language)),
  );
}

/** The cells of the table whose head begins with this cell, without the head and the rule. */
export function tableUnder(head: string, text: string): string[][] {
  const lines = text.split('\n');
  const first = lines.findIndex((line) => line.startsWith(`| ${head} |`));
  if (first < 0) throw new Error(`there is no table "${head}"`);
  const rows = lines.slice(first + 2);
  const end = rows.findIndex((line) => !line.startsWith('|'));
  return rows.slice(0, end < 0 ? undefined : end).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );
}

/** A text without its fenced snippets. */
export const proseOf = (text: string): string => text.replace(/^```[^]*?^```$/gm, '');

/** The texts between backticks. */
export const codeIn = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);

/** The text after `// ` on a line that prints. */
export const promisedOutput = (code: string): string[] =>
  [...code.matchAll(/console\.log\(.*\/\/ (.*)$/gm)].map(([, promised]) => promised!);

/** Every declaration of a source file, by its name. */
export function declarations(path: string): ReadonlyMap<string, ts.DeclarationStatement> {
  const source = ts.createSourceFile(path, readProjectFile(path), ts.ScriptTarget.ES2022, true);
  const found = new Map<string, ts.DeclarationStatement>();
  for (const statement of source.statements) {
    const declares =
      ts.isInterfaceDeclaration(statement) ||
      ts.isTypeAliasDeclaration(statement) ||
      (ts.isClassDeclaration(statement) && statement.name !== undefined);
    if (declares) found.set(statement.name!.text, statement);
  }
  return found;
}

/** The members of an interface, a class or an object type that users see: no private and no internal ones. */
export function publicMembers(declared: ts.Node | undefined): string[] {
  const members =
    declared !== undefined &&
    (ts.isInterfaceDeclaration(declared) || ts.isClassDeclaration(declared) || ts.isTypeLiteralNode(declared))
      ? [...declared.members]
      : [];
  const names = members
    .filter((member) => !ts.getJSDocTags(member).some(({ tagName }) => tagName.text === 'internal'))
    .flatMap(({ name }) => (name === undefined || ts.isPrivateIdentifier(name) ? [] : [name.getText()]))
    // The source names the method by our own constant, for realms without the symbol. Its users know it by the symbol.
    .map((name) => (name === '[asyncDispose]' ? '[Symbol.asyncDispose]' : name));
  return [...new Set(names)];
}

/** The members of a type alias that is an object type, each with the members of its own type. */
export function nestedMembers(declared: ts.Node | undefined): Map<string, string[]> {
  if (declared === undefined || !ts.isTypeAliasDeclaration(declared) || !ts.isTypeLiteralNode(declared.type)) {
    throw new Error('not an object type');
  }
  return new Map(
    declared.type.members.map((member) => [
      member.name!.getText(),
      ts.isPropertySignature(member) ? publicMembers(member.type) : [],
    ]),
  );
}

/** The exports of a file by `export { ... }` and `export type { ... }`. */
export function exportedNames(path: string): string[] {
  const source = ts.createSourceFile(path, readProjectFile(path), ts.ScriptTarget.ES2022, true);
  return source.statements.flatMap((statement) =>
    ts.isExportDeclaration(statement) && statement.exportClause && ts.isNamedExports(statement.exportClause)
      ? statement.exportClause.elements.map(({ name }) => name.text)
      : [],
  );
}

/** Type errors in modules that are checked as if they stood in the project's root, by the settings of the project. */
export function typeErrors(modules: ReadonlyMap<string, string>): string[] {
  const { config } = ts.readConfigFile(`${PROJECT_ROOT}/tsconfig.json`, (path) => ts.sys.readFile(path)) as {
    config: { compilerOptions: object };
  };
  const { options } = ts.convertCompilerOptionsFromJson(
    // The decorators of Nest are of the older kind.
    { ...config.compilerOptions, types: ['node'], incremental: false, experimentalDecorators: true },
    PROJECT_ROOT,
  );
  const host = ts.createCompilerHost(options);
  const virtual = new Map([...modules].map(([name, text]) => [`${PROJECT_ROOT.replaceAll('\\', '/')}/${name}`, text]));
  const { readFile, fileExists, getSourceFile } = host;
  host.readFile = (path) => virtual.get(path) ?? readFile(path);
  host.fileExists = (path) => virtual.has(path) || fileExists(path);
  host.getSourceFile = (path, target, ...rest) => {
    const text = virtual.get(path);
    return text === undefined ? getSourceFile(path, target, ...rest) : ts.createSourceFile(path, text, target);
  };
  // The package redlock does not export its own types.
  const program = ts.createProgram([...virtual.keys(), `${PROJECT_ROOT}/bench/redlock.d.ts`], options, host);
  return ts.getPreEmitDiagnostics(program).map(({ file, start, messageText }) => {
    const at = file && start !== undefined ? `:${file.getLineAndCharacterOfPosition(start).line + 1}` : '';
    return `${file?.fileName.split('/').at(-1) ?? ''}${at} ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
  });
}
