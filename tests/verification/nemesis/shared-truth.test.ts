import { expect, test } from '@jest/globals';
import { valueName } from './kinds.js';
import { ServerTruth } from './server-truth.js';
import { closeClients, holdElsewhere, inFlow, openClient, pause } from '../../support/clients/lock-clients.js';
import { startServer, type RedisServer } from '../../support/servers/servers.js';
import { wallAhead } from './timing.js';
import { stamp } from '../../support/history/history-recorder.mjs';
import type { LockClient } from '../../../src/client/create-client.js';
import type { Hold } from '../../../src/holding/hold.js';
import type { Lock } from '../../../src/locks/lock.js';

interface Seen {
  readonly who: string;
  readonly half: string | undefined;
  readonly lock: string;
  readonly from: number;
  readonly at: number;
}

/** The lines of a separate server during `work`. The owners have the names that `work` gives them. */
async function seen(
  work: (client: LockClient, server: RedisServer, called: (name: string, owner: string) => void) => Promise<void>,
): Promise<Seen[]> {
  const server = await startServer({ loneMaster: false });
  try {
    const truth = new ServerTruth(await wallAhead());
    const monitor = await server.monitor();
    const names = new Map<string, string>();
    const client = await openClient({ url: server.url });
    await inFlow(() => work(client, server, (name, owner) => names.set(owner, name)));
    await closeClients();
    truth.read((await monitor.settle()).map((line) => ({ ...line, node: 0 })));
    truth.end(stamp());
    expect(truth.contradictions).toEqual([]);
    const held = truth.held.flatMap((event) => (event.type === 'held' ? [event] : []));
    return held
      .map(({ lock, owner, half, from, at }) => ({ who: names.get(owner) ?? owner, half, lock, from, at }))
      .sort((a, b) => a.who.localeCompare(b.who) || a.lock.localeCompare(b.lock) || a.at - b.at);
  } finally {
    await server.stop();
  }
}

const LONG_MS = 60_000;
const SHORT_MS = 300;
/** Difference between the clock of the server and the local one, and the rounding of the server to ms. */
const SLACK_MS = 3;

/** A hold that ends with its lease, because its client has gone. */
async function abandoned({ url }: RedisServer, lockOf: (client: LockClient) => Lock): Promise<Hold> {
  const client = await openClient({ url });
  const hold = await holdElsewhere(lockOf(client), SHORT_MS);
  await client.close();
  return hold;
}

/** It was released by a call that ran from `before` on. */
function expectGivenBack({ at }: Seen | undefined = nobody, before: number, after: number): void {
  expect(at).toBeGreaterThan(before - SLACK_MS);
  expect(at).toBeLessThan(after + SLACK_MS);
}
const nobody: Seen = { who: 'nobody', half: undefined, lock: '', from: NaN, at: NaN };
const lasted = ({ from, at }: Seen | undefined = nobody): number => at - from;

test('readers hold a read-write lock side by side, each until its lease ends or it releases', async () => {
  let [before, after] = [0, 0];
  const [long, short, ...others] = await seen(async (client, server, called) => {
    const lock = client.getReadWriteLock('readwrite:1').readLock();
    const first = await inFlow(() => lock.acquire({ leaseTime: LONG_MS }));
    const second = await abandoned(server, (other) => other.getReadWriteLock('readwrite:1').readLock());
    called('long', first.owner);
    called('short', second.owner);
    await pause(SHORT_MS + 100); // no command shows the end of its lease
    before = stamp();
    await first.release();
    after = stamp();
  });
  expect(others).toEqual([]);
  expect(long).toMatchObject({ who: 'long', half: 'read', lock: 'readwrite:1' });
  expectGivenBack(long, before, after);
  expect(short).toMatchObject({ who: 'short', half: 'read', lock: 'readwrite:1' });
  expect(Math.abs(lasted(short) - SHORT_MS)).toBeLessThan(SLACK_MS);
});

test('a writer holds the lock until its release, and its read holds last longer', async () => {
  const marks: number[] = [];
  const [write, read, ...others] = await seen(async (client, _server, called) => {
    const lock = client.getReadWriteLock('readwrite:1');
    const writing = await lock.writeLock().acquire({ leaseTime: LONG_MS });
    called('owner', writing.owner);
    const reading = await writing.run(() => lock.readLock().acquire({ leaseTime: LONG_MS }));
    for (const hold of [writing, reading]) {
      await pause(50);
      marks.push(stamp());
      await hold.release();
    }
    marks.push(stamp());
  });
  const [first, second, last] = marks as [number, number, number];
  expect(others).toEqual([]);
  expect(write).toMatchObject({ who: 'owner', half: 'write' });
  expectGivenBack(write, first, second);
  expect(read).toMatchObject({ who: 'owner', half: 'read' });
  expectGivenBack(read, second, last);
});

test('a reader holds the lock as long as its longest hold, also if a shorter one had expired at the release', async () => {
  const marks: number[] = [];
  const [read, ...others] = await seen(async (client, _server, called) => {
    const lock = client.getReadWriteLock('readwrite:1').readLock();
    const outer = await lock.acquire({ leaseTime: LONG_MS });
    called('reader', outer.owner);
    const inner = await outer.run(() => lock.acquire({ leaseTime: SHORT_MS }));
    await pause(SHORT_MS + 100);
    marks.push(stamp());
    await outer.release(); // and with it the other, which has nothing left
    marks.push(stamp());
    await inner.release().catch(() => undefined);
  });
  expect(others).toEqual([]);
  expect(read).toMatchObject({ who: 'reader', half: 'read' });
  expectGivenBack(read, marks[0]!, marks[1]!);
});

test('a writer hands the lock over to the next, and they never hold it at the same time', async () => {
  const held = await seen(async (client, _server, called) => {
    const lock = client.getReadWriteLock('readwrite:1').writeLock();
    const first = await holdElsewhere(lock, LONG_MS);
    called('first', first.owner);
    const handed: boolean[] = [];
    client.events.on('acquired', ({ handedOff }) => handed.push(handedOff));
    const next = holdElsewhere(lock, LONG_MS);
    await pause(100); // it stands in line, and has made its last try
    await first.release();
    const second = await next;
    called('second', second.owner);
    expect(handed).toEqual([true]);
    await second.release();
  });
  expect(held.map(({ who, half }) => [who, half])).toEqual([
    ['first', 'write'],
    ['second', 'write'],
  ]);
  const [first, second] = held as [Seen, Seen];
  expect(second.from).toBeGreaterThanOrEqual(first.at);
});

test('each value of a group is held until it is released, deleted, or its lease ends', async () => {
  const marks: number[] = [];
  const held = await seen(async (client, server, called) => {
    const first = await client.getMultiLock('group:1', ['a', 'b']).acquire({ leaseTime: LONG_MS });
    const second = await abandoned(server, (other) => other.getMultiLock('group:1', ['c']));
    called('first', first.owner);
    called('second', second.owner);
    await pause(SHORT_MS + 100); // no command shows the end of its lease
    marks.push(stamp());
    await first.release();
    marks.push(stamp());
    const third = await inFlow(() => client.getMultiLock('group:1', ['c']).acquire({ leaseTime: LONG_MS }));
    called('third', third.owner);
    marks.push(stamp());
    await server.command('DEL', 'group:1');
    marks.push(stamp());
    await third.release().catch(() => undefined);
  });
  const [a, b, second, third] = held;
  const [before, after, beforeDel, afterDel] = marks as [number, number, number, number];
  expect(held.map(({ who, lock }) => [who, lock])).toEqual([
    ['first', valueName('group:1', 'a')],
    ['first', valueName('group:1', 'b')],
    ['second', valueName('group:1', 'c')],
    ['third', valueName('group:1', 'c')],
  ]);
  for (const each of [a, b]) expectGivenBack(each, before, after);
  expect(Math.abs(lasted(second) - SHORT_MS)).toBeLessThan(SLACK_MS);
  expectGivenBack(third, beforeDel, afterDel);
});
