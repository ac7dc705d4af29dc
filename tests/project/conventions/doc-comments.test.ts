import { expect, test } from '@jest/globals';
import ts from 'typescript';
import { projectFiles } from '../../support/project/project-files.js';
import { declarations, exportedNames } from '../../support/project/guide.js';

/** The public surface: the members of the client and of each exported class of the folders that users call. */
const exported = new Set(exportedNames('src/index.ts'));
const folders = ['locks', 'several', 'synchronizers'].flatMap((folder) => projectFiles(`src/${folder}`, '.ts'));
const kinds = [...folders, 'src/client/lock-client.ts'].flatMap((path) =>
  [...declarations(path)].filter(
    ([name, declared]) =>
      ts.isClassDeclaration(declared) && (exported.has(name) || /^(Ownerless|PermitSource|Joint)/.test(name)),
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
    // Without its own comment, the comment of the overridden member counts.
    const inherits = text === '' && modifiers?.some(({ kind }) => kind === ts.SyntaxKind.OverrideKeyword) === true;
    if (!inherits && !text.includes('@internal')) comments.set(name, (comments.get(name) ?? '') + text);
  }
  return comments;
}

/** Public members without a counterpart in Redisson, or with more in their comment than the overridden member. */
const ADDITIONS: Readonly<Record<string, readonly string[]>> = {
  GroupMultiLock: ['remainTimeToLive'],
  JointLock: ['name', 'forceUnlock', 'isLocked', 'remainTimeToLive', 'getHoldCount', 'currentHold'],
  Lock: ['currentHold', 'acquire', 'tryAcquire', 'withLock'],
  LockClient: ['id', 'events', 'holds', 'list', 'inspect', 'stats'],
  Permit: ['id', 'ids', 'semaphoreName', 'validFor', 'updateLeaseTime', 'release'],
  PermitExpirableSemaphore: ['acquirePermit', 'tryAcquirePermit', 'withPermit'],
  Semaphore: ['acquirePermits', 'tryAcquirePermits', 'tryRelease', 'withPermits'],
  SemaphorePermits: ['release'],
};

test.each(kinds)(
  'every public member of %s has a doc comment and names its counterpart in Redisson',
  (name, declared) => {
    const comments = [...commentsOf(declared)];
    expect(comments.filter(([, comment]) => comment === '').map(([member]) => member)).toEqual([]);
    const unnamed = comments.filter(
      ([member, comment]) => !comment.includes('@redisson') && ADDITIONS[name]?.includes(member) !== true,
    );
    expect(unnamed.map(([member]) => member)).toEqual([]);
  },
);

test('a counterpart in Redisson is a method or a class of it', () => {
  const tags = kinds.flatMap(([, declared]) =>
    [...declared.getText().matchAll(/@redisson (.*)/g)].map(([, tag]) => tag!),
  );
  expect(tags.length).toBeGreaterThan(50);
  expect(tags.filter((tag) => !/^`(R\w+|LockOptions)[#.\w(), <>]*`/.test(tag))).toEqual([]);
});

test('the list of kinds has every kind', () => {
  expect(kinds.map(([name]) => name)).toEqual(
    expect.arrayContaining(['Lock', 'Semaphore', 'CountDownLatch', 'LockClient']),
  );
  expect(kinds.length).toBeGreaterThan(12);
});
