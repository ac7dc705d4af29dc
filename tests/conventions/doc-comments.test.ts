import { expect, test } from '@jest/globals';
import ts from 'typescript';
import { projectFiles } from '../support/project-files.js';
import { declarations, exportedNames } from '../support/readme.js';

/** The public surface: the members of the client and of each exported class of the folders that users call. */
const exported = new Set(exportedNames('src/index.ts'));
const folders = ['locks', 'several', 'synchronizers'].flatMap((folder) => projectFiles(`src/${folder}`, '.ts'));
const kinds = [...folders, 'src/client/create-client.ts'].flatMap((path) =>
  [...declarations(path)].filter(
    ([name, declared]) =>
      (ts.isClassDeclaration(declared) && (exported.has(name) || /^(Shared|Joint)/.test(name))) ||
      name === 'LockClient',
  ),
);

function commentsOf(declared: ts.Node): Map<string, string> {
  const comments = new Map<string, string>();
  if (!ts.isClassDeclaration(declared) && !ts.isInterfaceDeclaration(declared)) return comments;
  for (const member of declared.members) {
    const name = member.name?.getText();
    if (name === undefined || /^[#[]/.test(name)) continue;
    const text = ts
      .getJSDocCommentsAndTags(member)
      .map((comment) => comment.getText())
      .join();
    const modifiers = ts.canHaveModifiers(member) ? ts.getModifiers(member) : undefined;
    // Where it says nothing else, the comment of what is overridden counts.
    const inherits = text === '' && modifiers?.some(({ kind }) => kind === ts.SyntaxKind.OverrideKeyword) === true;
    if (!inherits && !text.includes('@internal')) comments.set(name, (comments.get(name) ?? '') + text);
  }
  return comments;
}

test.each(kinds)(
  'every public member of %s names the method of Redisson that it is, or says that there is none',
  (_, declared) => {
    const whole = ts
      .getJSDocCommentsAndTags(declared)
      .map((comment) => comment.getText())
      .join();
    // Some are an addition as a whole.
    if (/Redisson has\s(\* )?no such object/.test(whole.replace(/\n \*/g, ''))) return;
    const silent = [...commentsOf(declared)].filter(([, comment]) => !comment.includes('Redisson'));
    expect(silent.map(([name]) => name)).toEqual([]);
  },
);

test('the kinds are those that there are', () => {
  expect(kinds.map(([name]) => name)).toEqual(
    expect.arrayContaining(['Lock', 'Semaphore', 'CountDownLatch', 'LockClient']),
  );
  expect(kinds.length).toBeGreaterThan(12);
});
