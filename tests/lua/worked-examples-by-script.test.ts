import { afterEach, expect, test } from '@jest/globals';
import {
  lockChannel,
  readHoldBase,
  readWriteChannel,
  requestsKey,
  semaphoreChannel,
  takenPermitsKey,
} from '../../src/redis/keys.js';
import * as group from '../../src/several/group/scripts.js';
import * as lock from '../../src/redis/scripts/lock.js';
import * as permits from '../../src/redis/scripts/permit-expirable-semaphore.js';
import * as readWrite from '../../src/redis/scripts/read-write-lock.js';
import * as semaphore from '../../src/redis/scripts/semaphore.js';
import * as spin from '../../src/redis/scripts/spin-lock.js';
import type { Reason } from '../support/java/deviation-reasons.js';
import { serverNow, valueField } from '../support/lua/group-values.js';
import { Published } from '../support/clients/published.js';
import { admin, freshName, leavesKeys } from '../support/redis.js';
import { readState } from '../support/redis-state.js';
import { runOperation as run } from '../support/lua/run-operation.js';
import { between } from './script-bench.js';

/*
 * The examples of the wire document, row by row, with our scripts and its owners. Those that a client has to make are
 * in worked-examples.test.ts, and the fair lock's, which is about scores, is in fair-lock.test.ts.
 */

/** A thread of a JVM, and an owner of Holdfast. */
const A = '8743c9c0-0795-4907-87fd-6c719a6b4586:52';
const N = '1d9f0b62-3c1e-4b7a-9f10-5a2b6c7d8e9f:7';
const ids = ['1', '2', '3'].map((digit) => digit.repeat(32)) as [string, string, string];
const values = ['f1', 'f2', 'f3'];

interface Row {
  readonly step: string;
  readonly does: (name: string) => Promise<unknown>;
  readonly reply?: unknown;
  /** All keys there are: the value of each, and ms until it expires, -1: never. Absent: as before. */
  readonly keys?: Readonly<Record<string, readonly [value: unknown, ms: number]>>;
  readonly published?: readonly string[];
  /** The value of the document at this place. */
  readonly redisson?: readonly [what: string, why: Reason];
}

const NEVER = '922337203685477';
/** At most this number, and not much less, because time passes. */
const about = (ms: number): unknown => between(ms - 1_000, ms);
const granted = { kind: 'granted' };
const busyFor = (ms: number): unknown => ({ kind: 'busy', retryAfterMs: about(ms) });

/** Names, owners, ids and values as in the document; moments as ms from now. */
async function look(name: string, alias: string): Promise<Record<string, unknown>> {
  const now = await serverNow();
  const state = Object.entries(await readState(admin())).filter(
    ([key]) => key.includes(name) && !key.startsWith('holdfast_'),
  );
  let text = JSON.stringify(
    state.map(([key, { type, value, pttl }]) => [
      key,
      [type === 'zset' ? Object.fromEntries(value as [string, string][]) : value, pttl],
    ]),
  );
  const named: [string, string][] = [
    [name, alias],
    [A, 'A'],
    [N, 'N'],
    [`"${NEVER}"`, '"never"'],
    ['raw:', ''],
  ];
  named.push(...values.map((value): [string, string] => [valueField(value), value]));
  named.push(...ids.map((id, at): [string, string] => [id, `id${at + 1}`]));
  for (const [ours, theirs] of named) text = text.replaceAll(ours, theirs);
  text = text.replace(/"(1\d{12})"/g, (_, moment: string) => String(Number(moment) - now));
  return Object.fromEntries(JSON.parse(text) as [string, unknown][]);
}

/** As if so many ms had gone by. */
async function pass(name: string, ms: number): Promise<void> {
  for (const [key, { type, value, pttl }] of Object.entries(await readState(admin()))) {
    if (!key.includes(name) || key.startsWith('holdfast_')) continue;
    if (pttl > 0) await admin().pexpire(key, pttl - ms);
    if (type !== 'zset') continue;
    for (const [member, score] of value as [string, string][]) {
      if (score !== NEVER) await admin().zincrby(key, -ms, Buffer.from(member.slice('raw:'.length), 'hex'));
    }
  }
}

const UNPARKED = ['', '', 0, 0] as const;
const toLock = (name: string): [string, string] => ['PUBLISH', lockChannel(name)];
const toReaders = (name: string): [string, string] => ['PUBLISH', readWriteChannel(name)];
const toSemaphore = (name: string): [string, string] => ['PUBLISH', semaphoreChannel(name)];
const taken = (name: string): [string, string] => [name, takenPermitsKey(name)];

const read = (name: string, owner: string, lease = 30_000) =>
  run(readWrite.acquireRead, [name], [readHoldBase(name), owner, lease]);
const write = (name: string) => run(readWrite.acquireWrite, [name], [`${A}:write`, 30_000]);
/** All that the owner has. */
const leave = (name: string, owner: string) =>
  run(readWrite.release, [name], [readHoldBase(name), ...toReaders(name), owner]);
/** A keeps so many write holds, and a read hold of 30 s. */
const leaveOne = (name: string, writes: number) =>
  run(readWrite.releasePartial, [name], [readHoldBase(name), A, writes, 30_000, ...toReaders(name), 30_000]);
const hold = (owner: string, n: number) => `{myLock}:${owner}:rwlock_timeout:${n}`;
const take = (name: string, id: string, lease: number) =>
  run(permits.acquire, taken(name), [lease, ...toSemaphore(name), -1, id]);
const held = (value: string, owner: string): Record<string, unknown> => ({
  [value]: owner,
  [`${value}:${owner}:expire_time`]: about(30_000),
  [`${value}:${owner}:lock_count`]: '1',
});

const EXAMPLES: Readonly<Record<string, { readonly of: string; readonly rows: readonly Row[] }>> = {
  'section 5: a watchdog renews held locks': {
    of: 'myLock',
    rows: [
      {
        step: 'A acquires one lock, N the other',
        does: async (name) => [
          await run(lock.acquire, [name], [A, 5_000, ...UNPARKED]),
          await run(lock.acquire, [`${name}:l2`], [N, 8_000, ...UNPARKED]),
        ],
        reply: [granted, granted],
        keys: { myLock: [{ A: '1' }, 5_000], 'myLock:l2': [{ N: '1' }, 8_000] },
      },
      {
        step: 'the client of A renews both',
        does: (name) => run(lock.renew, [name, `${name}:l2`], [A, 30_000, A, 30_000]),
        reply: [{ remainingMs: about(30_000) }, 'lost'],
        keys: { myLock: [{ A: '1' }, 30_000], 'myLock:l2': [{ N: '1' }, 8_000] },
      },
    ],
  },
  'section 7: the release of a spin lock publishes nothing': {
    of: 'myLock',
    rows: [
      {
        step: 'A acquires',
        does: (name) => run(lock.acquire, [name], [A, 30_000, ...UNPARKED]),
        reply: granted,
        keys: { myLock: [{ A: '1' }, 30_000] },
      },
      {
        step: 'N acquires',
        does: (name) => run(lock.acquire, [name], [N, 30_000, ...UNPARKED]),
        reply: busyFor(30_000),
      },
      {
        step: 'A releases',
        does: (name) => run(spin.release, [name], ['PUBLISH', '', '', A]),
        reply: 'freed',
        keys: {},
      },
      {
        step: 'the next try of N',
        does: (name) => run(lock.acquire, [name], [N, 30_000, ...UNPARKED]),
        reply: granted,
        keys: { myLock: [{ N: '1' }, 30_000] },
      },
    ],
  },
  'section 11: readers, a writer that reads, a downgrade': {
    of: 'myLock',
    rows: [
      {
        step: 'A read',
        does: (name) => read(name, A),
        reply: granted,
        keys: { myLock: [{ mode: 'read', A: '1' }, 30_000], [hold('A', 1)]: ['1', 30_000] },
      },
      {
        step: 'N read, lease 10000',
        does: (name) => read(name, N, 10_000),
        reply: granted,
        keys: {
          myLock: [{ mode: 'read', A: '1', N: '1' }, 30_000],
          [hold('A', 1)]: ['1', 30_000],
          [hold('N', 1)]: ['1', 10_000],
        },
      },
      {
        step: 'A read again',
        does: (name) => run(readWrite.nestRead, [name], [readHoldBase(name), A, 2, 30_000]),
        reply: { kind: 'held' },
        keys: {
          myLock: [{ mode: 'read', A: '2', N: '1' }, 30_000],
          [hold('A', 1)]: ['1', 30_000],
          [hold('A', 2)]: ['1', 30_000],
          [hold('N', 1)]: ['1', 10_000],
        },
      },
      {
        step: 'renewal by the client of A, 5 s later',
        async does(name) {
          await pass(name, 5_000);
          return run(readWrite.renew, [name], [readHoldBase(name), A, 30_000, 0, 2, 1, 1]);
        },
        reply: [{ remainingMs: about(30_000) }],
        keys: {
          myLock: [{ mode: 'read', A: '2', N: '1' }, 30_000],
          [hold('A', 1)]: ['1', 30_000],
          [hold('A', 2)]: ['1', 30_000],
          [hold('N', 1)]: ['1', 5_000],
        },
      },
      {
        step: 'A write',
        does: write,
        reply: busyFor(30_000),
      },
      {
        step: 'A releases read',
        does: (name) => leaveOne(name, 0),
        reply: { kind: 'held' },
        keys: {
          myLock: [{ mode: 'read', A: '1', N: '1' }, 30_000],
          [hold('A', 1)]: ['1', 30_000],
          [hold('N', 1)]: ['1', 5_000],
        },
      },
      {
        step: 'A releases read',
        does: (name) => leave(name, A),
        reply: 'freed',
        keys: { myLock: [{ mode: 'read', N: '1' }, 5_000], [hold('N', 1)]: ['1', 5_000] },
      },
      {
        step: 'A releases read again',
        does: (name) => leave(name, A),
        reply: 'gone',
      },
      {
        step: 'N releases read',
        does: (name) => leave(name, N),
        reply: 'freed',
        keys: {},
        published: ['redisson_rwlock:{myLock} 0'],
      },
      {
        step: 'N releases read again',
        does: (name) => leave(name, N),
        reply: 'gone',
        keys: {},
        redisson: ['publishes 0', 'notOwner'],
      },
      { step: 'A write', does: write, reply: granted, keys: { myLock: [{ mode: 'write', 'A:write': '1' }, 30_000] } },
      {
        step: 'A write again, lease 10000',
        does: (name) => run(readWrite.nestWrite, [name], [`${A}:write`, 2, 10_000]),
        reply: { kind: 'held' },
        keys: { myLock: [{ mode: 'write', 'A:write': '2' }, 30_000] },
        redisson: ['ttl 40000', 'addsUp'],
      },
      {
        step: 'A read',
        does: (name) => run(readWrite.nestRead, [name], [readHoldBase(name), A, 1, 30_000]),
        reply: { kind: 'held' },
        keys: { myLock: [{ mode: 'write', 'A:write': '2', A: '1' }, 30_000], [hold('A', 1)]: ['1', 30_000] },
      },
      {
        step: 'N read',
        does: (name) => read(name, N),
        reply: busyFor(30_000),
      },
      {
        step: 'A releases write',
        does: (name) => leaveOne(name, 1),
        reply: { kind: 'held' },
        keys: { myLock: [{ mode: 'write', 'A:write': '1', A: '1' }, 30_000], [hold('A', 1)]: ['1', 30_000] },
        redisson: ['ttl 10000', 'ownLease'],
      },
      {
        step: 'A releases write',
        does: (name) => leaveOne(name, 0),
        reply: { kind: 'held' },
        keys: { myLock: [{ mode: 'read', A: '1' }, 30_000], [hold('A', 1)]: ['1', 30_000] },
        published: ['redisson_rwlock:{myLock} 1'],
        redisson: ['publishes nothing', 'downgradeWakes'],
      },
      {
        step: 'A releases read',
        does: (name) => leave(name, A),
        reply: 'freed',
        keys: {},
        published: ['redisson_rwlock:{myLock} 0'],
      },
      {
        step: 'A write, A releases write',
        does: async (name) => [await write(name), await leave(name, A)],
        reply: [granted, 'freed'],
        keys: {},
        published: ['redisson_rwlock:{myLock} 1'],
      },
    ],
  },
  'section 12.2: two values of a group': {
    of: 'grp',
    rows: [
      {
        step: 'A acquires f1 and f2',
        does: (name) => run(group.acquire, [name], [A, 30_000, ...['f1', 'f2'].map(valueField)]),
        reply: granted,
        keys: { grp: [{ ...held('f1', 'A'), ...held('f2', 'A') }, 30_000] },
      },
      {
        step: 'N acquires f2 and f3',
        does: (name) => run(group.acquire, [name], [N, 30_000, ...['f2', 'f3'].map(valueField)]),
        reply: busyFor(30_000),
      },
      {
        step: 'A releases',
        does: (name) => run(group.release, [name], [...toLock(name), 1, 2, A, ...['f1', 'f2'].map(valueField)]),
        reply: 'freed',
        keys: {},
        published: ['redisson_lock__channel:{grp} 0'],
      },
    ],
  },
  'section 14: two permits, one with a lease': {
    of: 'sem',
    rows: [
      {
        step: 'trySetPermits(2)',
        does: (name) =>
          run(semaphore.trySet, [name, requestsKey(name, N.split(':')[0]!)], [2, -1, ...toSemaphore(name), 0, 1]),
        reply: true,
        keys: { sem: ['2', -1] },
        published: ['redisson_sc:{sem} 2'],
      },
      {
        step: 'A takes id1 with a lease of 2000',
        does: (name) => take(name, ids[0], 2_000),
        reply: { kind: 'permits' },
        keys: { sem: ['1', -1], '{sem}:timeout': [{ id1: about(2_000) }, -1] },
      },
      {
        step: 'N takes id2 without lease',
        does: (name) => take(name, ids[1], -1),
        reply: { kind: 'permits', next: busyFor(2_000) },
        keys: { sem: ['0', -1], '{sem}:timeout': [{ id1: about(2_000), id2: 'never' }, -1] },
      },
      {
        step: 'a third try: nothing before the lease of id1 ends',
        does: (name) => take(name, ids[2], -1),
        reply: busyFor(2_000),
      },
      {
        step: 'after 2 s it finds what has come back',
        async does(name) {
          await pass(name, 2_000);
          return take(name, ids[2], -1);
        },
        reply: { kind: 'permits', next: { kind: 'busy' } },
        keys: { sem: ['0', -1], '{sem}:timeout': [{ id2: 'never', id3: 'never' }, -1] },
        published: ['redisson_sc:{sem} 1'],
      },
      {
        step: 'N releases id2',
        does: (name) => run(permits.release, taken(name), [...toSemaphore(name), -1, 0, ids[1]]),
        reply: 'released',
        keys: { sem: ['1', -1], '{sem}:timeout': [{ id3: 'never' }, -1] },
        published: ['redisson_sc:{sem} 1'],
      },
      {
        step: 'A releases id1',
        does: (name) => run(permits.release, taken(name), [...toSemaphore(name), -1, 0, ids[0]]),
        reply: 'unknown',
      },
    ],
  },
};

let published: Published | undefined;
afterEach(() => published?.close());
leavesKeys('a script that is called on its own leaves keys that a client would remove');

test.each(Object.entries(EXAMPLES))('%s', async (_, { of, rows }) => {
  const name = freshName();
  const messages = (published = await Published.on(name));
  let left: Record<string, unknown> = {};
  for (const { step, does, reply, keys, published: said = [] } of rows) {
    const answered = await does(name);
    const told = (await messages.take()).map(({ channel, payload }) => `${channel.replace(name, of)} ${payload}`);
    if (keys !== undefined) {
      left = Object.fromEntries(
        Object.entries(keys).map(([key, [value, ms]]) => [key, [value, ms < 0 ? ms : about(ms)]]),
      );
    }
    expect([step, answered, await look(name, of), told]).toEqual([step, reply, left, said]);
  }
});
