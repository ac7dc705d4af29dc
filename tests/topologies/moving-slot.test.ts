import { describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import { keySlot } from '../../src/redis/cluster-slots.js';
import { fairQueueKey, readHoldKey, takenPermitsKey, tokenKey } from '../../src/redis/keys.js';
import type { SlotMove } from '../support/servers/cluster.js';
import { ClusterClients } from '../support/clients/cluster-clients.js';
import { elapsed } from '../support/time/elapsed.js';
import { inFlow, outcome, pause } from '../support/clients/lock-clients.js';
import { until } from '../support/time/until.js';

/*
 * While a slot moves, its keys are at two nodes. Redis refuses a command with several keys that are not all at one node,
 * and inside a script the old node refuses every key that it does not have.
 */

const LEASE_MS = 2_400;
const bench = new ClusterClients();

const openClient = (): Promise<LockClient> => bench.open({ lockWatchdogTimeout: LEASE_MS });

/** The slot of `name` is on its way, and the chosen keys have arrived. */
async function splitSlot(name: string, isChosen: (key: string) => boolean = () => false): Promise<SlotMove> {
  const { master } = await bench.cluster.shardOf(name);
  const move = await bench.cluster.beginMove(keySlot(name), await bench.otherMaster(master));
  await move.moveKeys(isChosen);
  return move;
}

/** Resolves when `client` has renewed each of its `count` holds of this lock for longer than a lease. */
async function renewedBeyondLease(client: LockClient, count = 1): Promise<void> {
  let renewed = 0;
  client.events.on('renewed', () => (renewed += 1));
  await until(() => renewed >= 4 * count, 'it is renewed for longer than a lease');
}

const lossesOf = (...clients: LockClient[]): unknown[] => {
  const lost: unknown[] = [];
  for (const client of clients) client.events.on('leaseLost', (event) => lost.push(event));
  return lost;
};

async function expectReleasedAtOnce(hold: { release(): Promise<void> }): Promise<void> {
  const asked = performance.now();
  await hold.release();
  expect(elapsed(asked)).toBeLessThan(2_000);
}

describe('read-write lock', () => {
  const SPLITS: [string, string[]][] = [
    ['nothing', []],
    ['the hash', ['hash']],
    ['the key of the first hold', ['first']],
    ['the key of the second hold', ['second']],
    ['the hash and the key of the first hold', ['hash', 'first']],
    ['the hash and the key of the second hold', ['hash', 'second']],
    ['the keys of both holds', ['first', 'second']],
    ['everything', ['hash', 'first', 'second']],
  ];

  test.each(SPLITS)(
    'R12: readers are renewed and released when a migrating slot has moved %s',
    async (_what, moved) => {
      const [first, second, third] = [await openClient(), await openClient(), await openClient()];
      const name = bench.freshName('read');
      const lost = lossesOf(first, second);
      const one = await inFlow(() => first.getReadWriteLock(name).readLock().acquire());
      const two = await inFlow(() => second.getReadWriteLock(name).readLock().acquire());
      const keys: Record<string, string> = {
        hash: name,
        first: readHoldKey(name, one.owner, 1),
        second: readHoldKey(name, two.owner, 1),
      };
      const move = await splitSlot(name, (key) => moved.some((part) => keys[part] === key));
      await Promise.all([renewedBeyondLease(first), renewedBeyondLease(second)]);
      expect(lost).toEqual([]);
      await expectReleasedAtOnce(one);
      await renewedBeyondLease(second);
      await move.finish();
      const write = third.getReadWriteLock(name).writeLock();
      expect(await inFlow(() => write.tryLock())).toBe(false);
      await renewedBeyondLease(second);
      expect(lost).toEqual([]);
      await expectReleasedAtOnce(two);
      await inFlow(() => write.withLock(() => undefined));
    },
    60_000,
  );

  test('R12: a write hold is renewed, nested, handed over and released before and after the hash has moved', async () => {
    const client = await openClient();
    const name = bench.freshName('write');
    const lost = lossesOf(client);
    const lock = client.getReadWriteLock(name).writeLock();
    const hold = await inFlow(() => lock.acquire());
    const move = await splitSlot(name);
    await renewedBeyondLease(client);
    await hold.run(() => lock.withLock(() => undefined));
    const next = inFlow(() => lock.acquire());
    await pause(100);
    await expectReleasedAtOnce(hold);
    const second = await next;
    await move.moveKeys();
    await renewedBeyondLease(client);
    await second.run(() => lock.withLock(() => undefined));
    await expectReleasedAtOnce(second);
    await inFlow(() => lock.withLock(() => undefined)); // a free lock is taken at the new node
    expect(lost).toEqual([]);
    await move.finish();
  }, 60_000);

  test('several readers acquire a free lock at the new node of the slot', async () => {
    const [first, second] = [await openClient(), await openClient()];
    const name = bench.freshName('free');
    const move = await splitSlot(name);
    const one = await inFlow(() => first.getReadWriteLock(name).readLock().acquire({ waitTime: 10_000 }));
    const two = await inFlow(() => second.getReadWriteLock(name).readLock().acquire({ waitTime: 10_000 }));
    await Promise.all([renewedBeyondLease(first), renewedBeyondLease(second)]);
    await expectReleasedAtOnce(one);
    await expectReleasedAtOnce(two);
    await move.finish();
  }, 60_000);

  test('calls that need a new key at the old node wait for the migration: a reader, a nested read hold, its release', async () => {
    const [client, other] = [await openClient(), await openClient()];
    const name = bench.freshName('waits');
    const lost = lossesOf(client, other);
    const lock = client.getReadWriteLock(name).readLock();
    const hold = await inFlow(() => lock.acquire());
    let moved = false;
    const afterMove = (): void => expect(moved).toBe(true);
    const move = await splitSlot(name);
    const nested = hold.run(() => lock.withLock(afterMove));
    const joining = inFlow(() => other.getReadWriteLock(name).readLock().withLock(afterMove));
    await pause(LEASE_MS);
    moved = true;
    await move.finish();
    await Promise.all([nested, joining]);
    expect(lost).toEqual([]);
    await hold.release();
  }, 60_000);

  test('extend() extends each key on its own', async () => {
    const client = await openClient();
    const name = bench.freshName('extended');
    const hold = await inFlow(() => client.getReadWriteLock(name).readLock().acquire({ leaseTime: 3_000 }));
    const move = await splitSlot(name, (key) => key !== name);
    await hold.extend(20_000);
    expect(hold.validFor()).toBeGreaterThan(15_000);
    expect(await move.from.command('PTTL', name)).toBeGreaterThan(15_000);
    await move.finish();
    await hold.release();
  }, 60_000);
});

describe('fair lock', () => {
  const SPLITS: [string, (name: string) => (key: string) => boolean][] = [
    ['nothing', () => () => false],
    ['the hash', (name) => (key) => key === name],
    ['the queue', (name) => (key) => key === fairQueueKey(name)],
    ['all but the hash', (name) => (key) => key !== name],
    ['everything', () => () => true],
  ];

  test.each(SPLITS)(
    'R12: it is renewed and released when a migrating slot has moved %s',
    async (_what, chosen) => {
      const [client, other] = [await openClient(), await openClient()];
      const name = bench.freshName('fair');
      const lost = lossesOf(client, other);
      const hold = await inFlow(() => client.getFairLock(name).acquire());
      let entered = 0;
      const waiting = inFlow(() => other.getFairLock(name).withLock(() => (entered = performance.now())));
      await until(async () => (await client.inspect(name)).queue.length === 1, 'it is queued');
      const move = await splitSlot(name, chosen(name));
      await renewedBeyondLease(client);
      await expectReleasedAtOnce(hold);
      const finished = performance.now();
      await move.finish();
      await waiting;
      // Its next sign of life, or the next attempt of one that Redis refused.
      expect(entered - finished).toBeLessThan(4_000);
      expect(lost).toEqual([]);
    },
    60_000,
  );

  test('without waiters it is released at once while the slot migrates', async () => {
    const client = await openClient();
    const name = bench.freshName('alone');
    const hold = await inFlow(() => client.getFairLock(name).acquire());
    const move = await splitSlot(name);
    await expectReleasedAtOnce(hold);
    await move.finish();
    await inFlow(() => client.getFairLock(name).withLock(() => undefined));
  }, 60_000);
});

describe('fenced lock', () => {
  test('R12: it is renewed and released, and a waiter of its client gets a larger token after the migration', async () => {
    const client = await openClient();
    const name = bench.freshName('fenced');
    const lost = lossesOf(client);
    const lock = client.getFencedLock(name);
    const hold = await inFlow(() => lock.acquire());
    const next = inFlow(() => lock.acquire());
    const move = await splitSlot(name, (key) => key === tokenKey(name));
    await renewedBeyondLease(client);
    await expectReleasedAtOnce(hold);
    await move.finish();
    const second = await next;
    expect(second.token).toBeGreaterThan(hold.token);
    expect(lost).toEqual([]);
    await second.release();
    await move.to.command('DEL', tokenKey(name));
  }, 60_000);
});

describe('group multi-lock', () => {
  test.each([
    ['before', () => false],
    ['after', () => true],
  ])(
    'R12: values are renewed and released %s their key has moved',
    async (_when, isChosen) => {
      const client = await openClient();
      const name = bench.freshName('group');
      const lost = lossesOf(client);
      const hold = await inFlow(() => client.getMultiLock(name, ['a', 'b']).acquire());
      const move = await splitSlot(name, isChosen);
      await renewedBeyondLease(client);
      await expectReleasedAtOnce(hold);
      expect(lost).toEqual([]);
      await move.finish();
    },
    60_000,
  );
});

describe('permits', () => {
  /** All lanes of requests are left for an hour; the semaphore's own keys are not. */
  const forget = async (move: SlotMove, name: string): Promise<void> => {
    await move.to.command('DEL', name, takenPermitsKey(name));
  };

  const CALLS: [string, (client: LockClient, name: string, id: string) => Promise<unknown>][] = [
    ['release', (client, name, id) => client.getPermitExpirableSemaphore(name).release(id)],
    ['updateLeaseTime', (client, name, id) => client.getPermitExpirableSemaphore(name).updateLeaseTime(id, 5_000)],
    ['getLeaseTime', (client, name, id) => client.getPermitExpirableSemaphore(name).getLeaseTime(id)],
    ['availablePermits', (client, name) => client.getPermitExpirableSemaphore(name).availablePermits()],
    ['tryAcquire', (client, name) => client.getPermitExpirableSemaphore(name).tryAcquire(0, 100)],
  ];

  test.each(CALLS)(
    'no permit is lost when %s finds only expired permits while the slot migrates',
    async (_call, run) => {
      const client = await openClient();
      const name = bench.freshName('over');
      const semaphore = client.getPermitExpirableSemaphore(name);
      await semaphore.trySetPermits(3);
      const [id = ''] = await semaphore.acquireMany(2, 500);
      const move = await splitSlot(name);
      await pause(600);
      expect(['ok', 'ERR_LOCK_UNKNOWN_PERMIT']).toContain(await outcome(run(client, name, id)));
      await pause(150);
      await move.finish();
      expect(await semaphore.availablePermits()).toBe(3);
      await forget(move, name);
    },
    60_000,
  );

  test('all taken permits that are released together while the slot migrates are counted', async () => {
    const client = await openClient();
    const name = bench.freshName('together');
    const semaphore = client.getPermitExpirableSemaphore(name);
    await semaphore.trySetPermits(3);
    const ids = await semaphore.acquireMany(3);
    const move = await splitSlot(name);
    await semaphore.release(ids);
    await move.finish();
    expect(await semaphore.availablePermits()).toBe(3);
    await forget(move, name);
  }, 60_000);

  test.each([
    ['of a semaphore', false],
    ['with leases', true],
  ])(
    'permits %s with keys at two nodes are released once the slot has moved',
    async (_kind, leased) => {
      const client = await bench.open({ commandTimeout: 600 });
      const name = bench.freshName('split');
      const expirable = client.getPermitExpirableSemaphore(name);
      const plain = client.getSemaphore(name);
      const semaphore = leased ? expirable : plain;
      await semaphore.trySetPermits(2);
      const permit = leased
        ? await expirable.acquirePermit({ permits: 2 })
        : await plain.acquirePermits({ permits: 2 });
      const move = await splitSlot(name, (key) => key === name);
      expect(await outcome(permit.release())).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
      await move.finish();
      await until(async () => (await semaphore.availablePermits()) === 2, 'they are free');
      await pause(1_000);
      expect(await semaphore.availablePermits()).toBe(2);
      await forget(move, name);
    },
    60_000,
  );
});

test('a latch with keys at two nodes is counted down once, after the slot has moved', async () => {
  const client = await openClient();
  const name = bench.freshName('latch');
  const latch = client.getCountDownLatch(name);
  await latch.trySetCount(2);
  const move = await splitSlot(name);
  const opened = latch.await(20_000);
  const counted = latch.countDown();
  await pause(500);
  await move.finish();
  await counted;
  expect(await latch.getCount()).toBe(1);
  await latch.countDown();
  expect(await opened).toBe(true);
}, 60_000);
