import { posix } from 'node:path';

export interface ImportLine {
  readonly specifier: string;
  /** The compiler erases `import type`. It does not erase `import { type X }`, which leaves an import of the module. */
  readonly typeOnly: boolean;
}

/** Source files by their path from the project's root. */
export type Sources = ReadonlyMap<string, string>;

/** Code without comments. Strings stay, since specifiers are strings. */
export function withoutComments(text: string): string {
  return text.replace(/("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|\/\*[\s\S]*?\*\/|\/\/.*/g, '$1');
}

export function readImports(text: string): ImportLine[] {
  const code = withoutComments(text);
  const lines: ImportLine[] = [];
  for (const [, kind, specifier] of code.matchAll(
    /^(?:import|export)\b(\s+type\b(?!\s+from))?[^;'"]*?from\s+['"]([^'"]+)['"]/gm,
  )) {
    lines.push({ specifier: specifier!, typeOnly: kind !== undefined });
  }
  for (const [, specifier] of code.matchAll(/^import\s+['"]([^'"]+)['"]/gm)) {
    lines.push({ specifier: specifier!, typeOnly: false });
  }
  for (const [, specifier] of code.matchAll(/\b(?:import|require)\s*\(\s*['"]([^'"]+)['"]/g)) {
    lines.push({ specifier: specifier!, typeOnly: false });
  }
  return lines;
}

/** The folders of src from the top down. A file imports only from its own folder and from the folders below it. */
export const FOLDERS = [
  'cli',
  'integrations',
  'client',
  'inspection/doctor',
  'inspection',
  'several',
  'several/group',
  'synchronizers',
  'locks',
  'waiting',
  'waiting/hand-overs',
  'waiting/limits',
  'holding',
  'protocols',
  'diagnostics',
  'ownership',
  'redis/requests',
  'redis/topologies',
  'redis/connections',
  'redis/scripts',
  'redis',
];

/** Files directly in src. Every file may import a leaf, and a leaf imports only leaves. */
const LEAVES = new Set(
  [
    'options',
    'errors',
    'events',
    'clock',
    'gate',
    'lease-time',
    'lock-name',
    'summary',
    'after-change',
    'async-dispose',
    'light-set',
    'back-off',
    'timing',
    'visible',
    'warn',
  ].map((name) => `src/${name}.ts`),
);

const ENTRY = 'src/index.ts';

/** The imports from redis that a folder above the mechanisms may have: requests of a kind, and no connections. */
const OPEN_TO_KINDS = /^src\/redis\/(scripts\/.*|keys\.ts)$/;
const KINDS = ['several', 'several/group', 'synchronizers', 'locks', 'protocols'];

/** An import of the text of a file, which is no import of its code. */
const TEXT = /\?text$/;

/** The folder of a file, from src; the empty string for a file directly in src. */
export function folderOf(path: string): string {
  return posix.dirname(path).replace(/^src\/?/, '');
}

/** The build copies these files into each subpath that imports them, so they declare no class. */
const isCopied = (path: string): boolean => path.startsWith('src/integrations/shared/') || path === 'src/visible.ts';

/** The subpath of the package that a file belongs to, such as `decorators`. */
const subpathOf = (path: string): string | undefined => /^src\/integrations\/([^/]+)\//.exec(path)?.[1];

function levelOf(path: string): number {
  const level = FOLDERS.indexOf(subpathOf(path) === undefined ? folderOf(path) : 'integrations');
  if (level < 0) throw new Error(`${path} is in no folder that the import test knows`);
  return level;
}

function resolveOwn(from: string, specifier: string): string {
  return posix.join(posix.dirname(from), specifier).replace(/\.js$/, '.ts');
}

/** One line for each import that the architecture does not allow. Type imports count like all others. */
export function forbiddenImports(sources: Sources): string[] {
  return [...sources].flatMap(([path, text]) =>
    readImports(text).flatMap((line) => {
      const why = offence(path, line, sources);
      return why === undefined ? [] : [`${path} imports ${line.specifier}: ${why}`];
    }),
  );
}

function offence(path: string, { specifier, typeOnly }: ImportLine, sources: Sources): string | undefined {
  if (!specifier.startsWith('.')) {
    const mayConnect = path.startsWith('src/redis/') || path === 'src/cli/connect.ts';
    return specifier === 'ioredis' && !mayConnect ? 'only src/redis imports ioredis' : undefined;
  }
  const target = resolveOwn(path, specifier);
  if (TEXT.test(specifier)) {
    return sources.has(target.replace(TEXT, '')) || !target.endsWith('.ts?text') ? undefined : 'there is no such file';
  }
  if (target.endsWith('.lua')) {
    return path.startsWith('src/redis/scripts/') ? undefined : 'scripts are bound in src/redis/scripts';
  }
  if (!sources.has(target)) return 'there is no such file';
  if (path.startsWith('src/cli/')) {
    const isOfPackage = target === ENTRY || /^src\/integrations\/(\w+\/index\.ts$|shared\/)/.test(target);
    return isOfPackage || target.startsWith('src/cli/')
      ? undefined
      : 'the command imports the root, the index of subpaths and integrations/shared';
  }
  const [subpath, other] = [subpathOf(path), subpathOf(target)];
  if (subpath !== undefined) {
    // The build leaves these two as imports. It would copy any other file, and its classes would exist twice.
    const ofPackage = target === ENTRY || target === `src/integrations/${other ?? ''}/index.ts`;
    if (isCopied(target) && /^(export )?(abstract )?class /m.test(sources.get(target) ?? '')) {
      return 'a file that the build copies declares no class';
    }
    return other === subpath || ofPackage || isCopied(target)
      ? undefined
      : 'a subpath imports the root, the index of other subpaths and integrations/shared';
  }
  if (path === ENTRY && other !== undefined) return 'the root loads no subpath';
  if (target === ENTRY) return 'index.ts is the way in for users';
  if (LEAVES.has(target) || path === ENTRY) return undefined;
  if (LEAVES.has(path)) return 'a leaf imports only leaves';
  if (levelOf(target) < levelOf(path)) return 'imports point down';
  if (!typeOnly && KINDS.includes(folderOf(path)) && target.startsWith('src/redis/') && !OPEN_TO_KINDS.test(target)) {
    return 'a kind imports only the bindings and the key names from redis';
  }
  return undefined;
}

/** Each cycle of imports between files once, as `a -> b -> a`. Type imports count like all others. */
export function importCycles(sources: Sources): string[] {
  return cyclesOf(
    new Map(
      [...sources].map(([path, text]) => [
        path,
        readImports(text)
          .filter(({ specifier }) => specifier.startsWith('.') && !TEXT.test(specifier))
          .map(({ specifier }) => resolveOwn(path, specifier)),
      ]),
    ),
  );
}

/** Each cycle of imports between folders once. Leaves and the entry file belong to no folder. */
export function folderCycles(sources: Sources): string[] {
  const edges = new Map<string, Set<string>>();
  for (const [path, text] of sources) {
    for (const { specifier } of readImports(text)) {
      const [from, to] = [folderOf(path), folderOf(resolveOwn(path, specifier))];
      if (!specifier.startsWith('.') || TEXT.test(specifier) || from === to || from === '' || to === '') continue;
      edges.set(from, (edges.get(from) ?? new Set()).add(to));
    }
  }
  return cyclesOf(new Map([...edges].map(([from, to]) => [from, [...to]])));
}

function cyclesOf(edges: ReadonlyMap<string, readonly string[]>): string[] {
  const cycles = new Set<string>();
  const done = new Set<string>();
  const visit = (node: string, trail: readonly string[]): void => {
    const start = trail.indexOf(node);
    if (start >= 0) {
      const circle = trail.slice(start);
      const first = circle.indexOf([...circle].sort()[0]!);
      cycles.add([...circle.slice(first), ...circle.slice(0, first), circle[first]].join(' -> '));
      return;
    }
    if (done.has(node)) return;
    for (const next of edges.get(node) ?? []) visit(next, [...trail, node]);
    done.add(node);
  };
  for (const node of edges.keys()) visit(node, []);
  return [...cycles].sort();
}
