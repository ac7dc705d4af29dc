import { expect, test } from '@jest/globals';
import { readScript, SCRIPT_FILES } from '../../support/lua/script-files.js';
import { permissionsFor } from '../../support/servers/user.js';

/** The scripts of each row of the table in docs/permissions.md, and the reads without a script. */
const READS = ['exists', 'pttl', 'hexists', 'hget', 'hkeys'];
const ROWS: Readonly<Record<string, { scripts: readonly string[]; reads: readonly string[]; as?: string }>> = {
  getLock: { scripts: ['lock/'], reads: READS },
  getFencedLock: { scripts: ['fenced-lock/'], reads: ['get'], as: 'getLock' },
  getFairLock: { scripts: ['fair-lock/'], reads: READS, as: 'getLock' },
  getSpinLock: {
    scripts: ['spin-lock/', 'lock/acquire', 'lock/release-partial', 'lock/renew'],
    reads: READS,
  },
  getReadWriteLock: { scripts: ['read-write-lock/'], reads: READS },
  getSemaphore: { scripts: ['semaphore/', 'request/'], reads: ['get', 'exists', 'pttl'] },
  getPermitExpirableSemaphore: { scripts: ['permit-expirable-semaphore/'], reads: ['get'], as: 'getSemaphore' },
  'getMultiLock(group, values)': { scripts: ['group-lock/'], reads: ['exists', 'hkeys'] },
  getCountDownLatch: { scripts: ['latch/', 'request/'], reads: ['get', 'mget'] },
  inspect: { scripts: ['object/inspect'], reads: [] },
  list: { scripts: ['object/inspect'], reads: ['scan', 'pubsub', 'client'] },
  forceUnlock: { scripts: ['object/force-unlock'], reads: [] },
};

/** The commands of a script. TIME is in the row of every client. */
function commandsOf(path: string): string[] {
  const code = readScript(path).replace(/--.*/g, '');
  const named = [...code.matchAll(/redis\.p?call\('([A-Z]+)'/g)].map(([, command]) => command!.toLowerCase());
  return [...named, ...(/redis\.p?call\(publish/.test(code) ? ['publish'] : [])].filter(
    (command) => command !== 'time',
  );
}

test('every script belongs to a row', () => {
  const all = Object.values(ROWS).flatMap(({ scripts }) => scripts);
  expect(SCRIPT_FILES.filter((path) => !all.some((start) => path.startsWith(`lua/${start}`)))).toEqual([]);
});

test.each(Object.entries(ROWS))(
  'the row of %s has exactly the permissions that its scripts and reads need',
  (row, used) => {
    const scripts = SCRIPT_FILES.filter((path) => used.scripts.some((start) => path.startsWith(`lua/${start}`)));
    expect(scripts.length).toBeGreaterThan(0);
    const needed = new Set([...scripts.flatMap(commandsOf), ...used.reads].map((command) => `+${command}`));
    const inherited = used.as === undefined ? [] : permissionsFor([used.as], 'name').commands;
    const listed = [...permissionsFor([row], 'name').commands, ...inherited];
    expect([...needed].filter((rule) => !listed.includes(rule))).toEqual([]);
    expect(listed.filter((rule) => !needed.has(rule) && !inherited.includes(rule))).toEqual([]);
  },
);
