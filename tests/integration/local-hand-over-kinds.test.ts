import { afterEach, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Lock } from '../../src/locks/lock.js';
import {
  answered,
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
} from '../support/clients/lock-clients.js';
import { startWorker } from '../support/processes/child.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { expectNoOverlap } from '../support/serious.js';
import { until } from '../support/time/until.js';
import { inLine, LOCAL_MS, times } from './local-hand-over-stage.js';

/* Kinds whose sections ask Redis each time, also with `handOff.local` and `handOff.keep`. */

const LEASE_MS = 10_000;
const HAND_OFF = { local: LOCAL_MS, keep: LOCAL_MS, maxTime: 60_000 };

afterEach(() => closeClients());

test.each<[string, (client: LockClient, name: string) => Lock]>([
  ['a fair lock', (client, name) => client.getFairLock(name)],
  ['a non-reentrant fair lock', (client, name) => client.getNonReentrantFairLock(name)],
  ['a fenced lock', (client, name) => client.getFencedLock(name)],
  ['a spin lock', (client, name) => client.getSpinLock(name)],
  ['a group multi-lock', (client, name) => client.getMultiLock(name, ['a', 'b'])],
  ['a multi-lock', (client, name) => client.getMultiLock(client.getLock(name), client.getLock(`${name}:second`))],
  ['a RedLock', (client, name) => client.getRedLock(client.getLock(name))],
])('of %s: each section has an owner of its own, Redis knows it, and nothing is kept', async (_, make) => {
  const client = await openClient({ handOff: HAND_OFF });
  const name = freshName();
  const lock = make(client, name);
  const owners: string[] = [];
  const section = (): Promise<void> =>
    lock.withLock({ leaseTime: LEASE_MS }, async ({ owner }) => {
      owners.push(owner);
      expect(JSON.stringify(await admin().hgetall(name))).toContain(owner);
      expect(await admin().pttl(name)).toBeLessThanOrEqual(LEASE_MS);
    });
  const first = await inFlow(() => lock.acquire({ leaseTime: LEASE_MS }));
  const sections = await inLine(client, times(4, section));
  await answered(client);
  await first.release();
  await Promise.all(sections);
  expect(new Set([first.owner, ...owners]).size).toBe(5);
  expect(await admin().exists(name)).toBe(0);
});

test('of a read lock: each read has an owner of its own and its own lease, and none is kept', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, handOff: HAND_OFF });
  const name = freshName();
  const read = client.getReadWriteLock(name).readLock();
  const owners = new Set<string>();
  const begun = proxy.log.length;
  for (let i = 0; i < 3; i += 1) {
    await inFlow(() =>
      read.withLock({ leaseTime: LEASE_MS }, async ({ owner }) => {
        owners.add(owner);
        expect(await admin().pttl(name)).toBeLessThanOrEqual(LEASE_MS);
      }),
    );
    expect(await admin().exists(name)).toBe(0);
  }
  expect(owners.size).toBe(3);
  const scripts = proxy.log.slice(begun).filter(({ name: command }) => command === 'EVALSHA');
  expect(scripts).toHaveLength(2 * 3);
});

test('a multi-lock takes a lock that the client has kept, and keeps none of its locks', async () => {
  const client = await openClient({ handOff: HAND_OFF });
  const names = [freshName('a'), freshName('b')];
  const [a, b] = names.map((name) => client.getLock(name)) as [Lock, Lock];
  const both = client.getMultiLock(a, b);
  const areFree = (...of: string[]): Promise<void> =>
    until(async () => (await admin().exists(...of)) === 0, 'the locks are free');
  for (const call of [{}, { waitTime: 0 }]) {
    await inFlow(() => a.withLock(() => undefined));
    expect(await admin().exists(names[0]!)).toBe(1);
    await inFlow(() => both.withLock(call, async () => expect(await admin().exists(...names)).toBe(2)));
    await areFree(...names);
  }
  // Neither does a try that finds one of them busy.
  const busy = await holdElsewhere((await openClient()).getLock(names[1]!));
  await inFlow(() => a.withLock(() => undefined));
  expect(await inFlow(() => both.tryLock())).toBe(false);
  await areFree(names[0]!);
  await busy.release();
});

test('readers and writers of several processes exclude one another with `keep` and releases in the background', async () => {
  const [url, name] = [testRedisUrl(), freshName()];
  const seen = `${name}-seen`;
  const module = new URL('./fixtures/readers-and-writers.mjs', import.meta.url);
  const workers = await Promise.all([startWorker(), startWorker(), startWorker()]);
  const handOff = { local: 40, keep: 20 };
  await Promise.all(workers.map((each) => each.createClient({ url, handOff, release: 'background' })));
  const rounds = 40;
  const load = { url, name, readers: 4, writers: 2, rounds, seen };
  const results = (await Promise.all(workers.map((each) => each.run(module, load)))) as {
    clashes: string[];
    handOvers: number;
  }[];
  expectNoOverlap(results.flatMap(({ clashes }) => clashes));
  expect(Number(await admin().hget(seen, 'value'))).toBe(workers.length * 2 * rounds);
  expect(results.reduce((sum, { handOvers }) => sum + handOvers, 0)).toBeGreaterThan(0);
  await Promise.all(workers.map((each) => each.close()));
  await admin().del(seen);
  await until(async () => (await admin().exists(name)) === 0, 'the lock is free');
});
