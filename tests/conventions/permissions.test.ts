import { expect, test } from '@jest/globals';
import { projectFiles, readProjectFile } from '../support/project-files.js';
import { permissionsFor } from '../support/user.js';

/** The scripts that each row of the README's table of permissions is for, and what is read without a script. */
const ROWS: Readonly<Record<string, { scripts: readonly string[]; reads: readonly string[] }>> = {
  getLock: { scripts: ['lock/'], reads: ['exists', 'pttl', 'hexists', 'hget', 'hkeys'] },
  getFencedLock: { scripts: ['fenced-lock/'], reads: ['get'] },
  getSpinLock: {
    scripts: ['spin-lock/', 'lock/acquire', 'lock/release-partial', 'lock/renew'],
    reads: ['exists', 'pttl', 'hexists', 'hget', 'hkeys'],
  },
  getReadWriteLock: { scripts: ['read-write-lock/'], reads: ['exists', 'pttl', 'hexists', 'hget', 'hkeys'] },
  getSemaphore: { scripts: ['semaphore/', 'request/'], reads: ['get'] },
  getCountDownLatch: { scripts: ['latch/', 'request/'], reads: ['get'] },
  inspect: { scripts: ['object/'], reads: [] },
};
const SCRIPTS = projectFiles('lua', '.lua');

/** What a script runs; TIME is in the row of every client. */
function commandsOf(path: string): string[] {
  const code = readProjectFile(path).replace(/--.*/g, '');
  const named = [...code.matchAll(/redis\.p?call\('([A-Z]+)'/g)].map(([, command]) => command!.toLowerCase());
  return [...named, ...(/redis\.call\(publish/.test(code) ? ['publish'] : [])].filter((command) => command !== 'time');
}

test('every script belongs to a row', () => {
  const all = Object.values(ROWS).flatMap(({ scripts }) => scripts);
  expect(SCRIPTS.filter((path) => !all.some((start) => path.startsWith(`lua/${start}`)))).toEqual([]);
});

test.each(Object.entries(ROWS))('the row of %s has what its scripts and reads need, and nothing else', (row, used) => {
  const scripts = SCRIPTS.filter((path) => used.scripts.some((start) => path.startsWith(`lua/${start}`)));
  expect(scripts.length).toBeGreaterThan(0);
  const needed = new Set([...scripts.flatMap(commandsOf), ...used.reads].map((command) => `+${command}`));
  const listed = permissionsFor(row === 'getFencedLock' ? [row, 'getLock'] : [row], 'name').commands;
  const inherited = row === 'getFencedLock' ? permissionsFor(['getLock'], 'name').commands : [];
  expect([...needed].filter((rule) => !listed.includes(rule))).toEqual([]);
  expect(listed.filter((rule) => !needed.has(rule) && !inherited.includes(rule))).toEqual([]);
});
