import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import { handOff, release } from '../../src/redis/scripts/read-write-lock.js';
import { answered, closeClients, inFlow, openClient, openProxy, outcome } from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';

/* The write half of a read-write lock goes from writer to writer of a client, as a plain lock does. */

const HAND_OFF = handOff.script!.sha;
const RELEASE = release.script!.sha;
const LIMIT = 5;

afterEach(() => closeClients());

/** Waiting calls, in this order, and their results. */
async function inLine<T>(client: LockClient, calls: readonly (() => Promise<T>)[]): Promise<Promise<T>[]> {
  let waiting = 0;
  client.events.on('waiting', () => (waiting += 1));
  const results: Promise<T>[] = [];
  for (const call of calls) {
    const before = waiting;
    results.push(inFlow(call));
    await until(() => waiting > before, 'the call waits');
  }
  return results;
}

async function listeners(name: string): Promise<number> {
  const [channel] = (await admin().pubsub('CHANNELS', `*${name}*`)) as string[];
  return channel === undefined ? 0 : Number((await admin().pubsub('NUMSUB', channel))[1]);
}

/** A head with a pending try gets no hand-over, and each confirmed subscription causes one more try. */
async function quiet(name: string, ...clients: readonly LockClient[]): Promise<void> {
  await until(async () => (await listeners(name)) === clients.length, 'each of them listens');
  for (const client of clients) await answered(client);
}

const times = <T>(count: number, call: () => Promise<T>): (() => Promise<T>)[] =>
  Array.from({ length: count }, () => call);

test('writers of a client hand the lock over with one command each, and publish nothing', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url });
  const lock = client.getReadWriteLock(freshName('rw')).writeLock();
  const hold = await inFlow(() => lock.acquire());
  const handedOff: boolean[] = [];
  client.events.on('acquired', (event) => handedOff.push(event.handedOff));
  const order: number[] = [];
  const calls = Array.from({ length: LIMIT }, (_, i) => () => lock.withLock(() => void order.push(i)));
  const sections = await inLine(client, calls);
  await quiet(lock.name, client);
  const before = proxy.log.length;
  await hold.release();
  await Promise.all(sections);
  expect(order).toEqual([0, 1, 2, 3, 4]);
  expect(handedOff).toEqual(order.map(() => true));
  const sent = proxy.log.slice(before).flatMap(({ name, args }) => (name === 'EVALSHA' ? [args[0]] : []));
  expect(sent).toEqual([...order.map(() => HAND_OFF), RELEASE]);
});

describe('R33: beside writers that hand the lock over', () => {
  const bounded = { handOff: { maxSections: LIMIT, maxTime: 60_000 } };

  test.each(['readLock', 'writeLock'] as const)(
    'a %s of another client gets its chance after a number of sections',
    async (half) => {
      const [client, other] = [await openClient(bounded), await openClient()];
      const name = freshName('rw');
      const lock = client.getReadWriteLock(name).writeLock();
      const hold = await inFlow(() => lock.acquire());
      let sections = 0;
      const crowd = await inLine(
        client,
        times(4 * LIMIT, () => lock.withLock(() => void (sections += 1))),
      );
      const [entered] = await inLine(other, [
        () =>
          other
            .getReadWriteLock(name)
            [half]()
            .withLock(() => sections),
      ]);
      await quiet(name, client, other);
      await hold.release();
      // The first release hands the lock over, too, and a woken waiter may come too late for the first chance.
      expect(await entered).toBeLessThanOrEqual(3 * (LIMIT + 1));
      await Promise.all(crowd);
    },
  );

  test('a reader of the same client gets its chance after a number of sections, also without other clients', async () => {
    const client = await openClient(bounded);
    const lock = client.getReadWriteLock(freshName('rw'));
    const hold = await inFlow(() => lock.writeLock().acquire());
    let sections = 0;
    const crowd = await inLine(
      client,
      times(4 * LIMIT, () => lock.writeLock().withLock(() => void (sections += 1))),
    );
    const [entered] = await inLine(client, [() => lock.readLock().withLock(() => sections)]);
    await quiet(lock.name, client);
    await hold.release();
    // As above: a process that is held up for a moment comes too late for a chance.
    expect(await entered).toBeLessThanOrEqual(3 * (LIMIT + 1));
    await Promise.all(crowd);
  });
});

test('R15: a writer that became a reader hands nothing over: other readers stay, and the next writer waits for them', async () => {
  const [client, other] = [await openClient(), await openClient()];
  const name = freshName('rw');
  const lock = client.getReadWriteLock(name);
  const write = await inFlow(() => lock.writeLock().acquire());
  const read = await inFlow(() => write.run(() => lock.readLock().acquire()));
  await write.release();
  const reader = await inFlow(() => other.getReadWriteLock(name).readLock().acquire());
  const [next] = await inLine(client, [() => lock.writeLock().acquire()]);
  await quiet(name, client);
  await read.release();
  expect(await outcome(inFlow(() => lock.writeLock().acquire({ waitTime: 100 })))).toBe('ERR_LOCK_TIMEOUT');
  expect(reader.validFor()).toBeGreaterThan(0);
  await reader.release();
  await (await next!).release();
});

test('R15: a writer with a read hold that releases both together hands the write half over and leaves no read hold', async () => {
  const client = await openClient();
  const name = freshName('rw');
  const lock = client.getReadWriteLock(name);
  const write = await inFlow(() => lock.writeLock().acquire());
  const read = await inFlow(() => write.run(() => lock.readLock().acquire()));
  const [next] = await inLine(client, [() => lock.writeLock().acquire()]);
  await quiet(name, client);
  await Promise.all([read.release(), write.release()]);
  const hold = await next!;
  expect(await admin().hgetall(name)).toEqual({ mode: 'write', [`${hold.owner}:write`]: '1' });
  expect(await admin().keys('*rwlock_timeout*')).toEqual([]);
  await hold.release();
});

const FAULTS = ['cutBefore', 'cutAfter', 'swallow'] as const;
test.each(FAULTS)(
  'R1, R5: %s during the hand-over: both calls settle as they should, and one writer has the lock',
  async (fault) => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, commandTimeout: 900 });
    const name = freshName('rw');
    const lock = client.getReadWriteLock(name).writeLock();
    // Known to the server, so that the fault meets the script itself.
    const warm: Hold = await inFlow(() => lock.acquire());
    const [first] = await inLine(client, [() => lock.acquire()]);
    await quiet(name, client);
    await warm.release();
    const hold = await first!;
    const [next] = await inLine(client, [() => lock.acquire()]);
    await quiet(name, client);
    const struck = proxy[fault]({ command: 'EVALSHA', sha: HAND_OFF });
    expect(await outcome(hold.release())).toBe('ok');
    const successor = await next!;
    expect(struck.count).toBe(1);
    expect(await admin().hgetall(name)).toEqual({ mode: 'write', [`${successor.owner}:write`]: '1' });
    await successor.release();
    expect(await admin().exists(name)).toBe(0);
  },
);
