import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { ReadWriteLock } from '../../src/locks/read-write-lock.js';
import type { ClientOptions } from '../../src/options.js';
import { readWriteChannel } from '../../src/redis/keys.js';
import * as scripts from '../../src/redis/scripts/read-write-lock.js';
import {
  answered,
  closeClients,
  inFlow,
  openClient,
  openProxy,
  outcome,
  pause,
  TestClock,
} from '../support/clients/lock-clients.js';
import { startWorker } from '../support/processes/child.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { elapsed } from '../support/time/elapsed.js';
import { FakeClock } from '../support/time/fake-clock.js';
import { until } from '../support/time/until.js';

/* `handOff.keep` for the read half of a read-write lock: readers hold the lock together, and a writer must get its turn. */

const KEPT = { local: 5_000, keep: 5_000, maxTime: 60_000 };
const BRIEF_MS = 300;
const SLACK_MS = 250;
const NAMES: Readonly<Record<string, string>> = {
  [scripts.acquireRead.script!.sha]: 'acquire-read',
  [scripts.acquireWrite.script!.sha]: 'acquire-write',
  [scripts.handOff.script!.sha]: 'hand-off',
  [scripts.nestRead.script!.sha]: 'nest-read',
  [scripts.othersWait.script!.sha]: 'others-wait',
  [scripts.releasePartial.script!.sha]: 'release-partial',
  [scripts.release.script!.sha]: 'release',
  [scripts.releaseReaders.script!.sha]: 'release',
};

afterEach(() => closeClients());

interface Bench {
  readonly proxy: FaultProxy;
  readonly client: LockClient;
  readonly clock: TestClock;
  readonly both: ReadWriteLock;
  readonly name: string;
}

async function bench(handOff: ClientOptions['handOff'] = KEPT, more: ClientOptions = {}): Promise<Bench> {
  const { proxy, url } = await openProxy();
  const clock = new TestClock();
  const client = await openClient({ url, clock, handOff, ...more });
  const name = freshName();
  return { proxy, client, clock, both: client.getReadWriteLock(name), name };
}

/** So many reads at the same time. */
async function reads({ both, client }: Bench, count: number, work?: () => unknown): Promise<string[]> {
  const owners: string[] = [];
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const sections = Array.from({ length: count }, () =>
    inFlow(() =>
      both.readLock().withLock(async (hold) => {
        owners.push(hold.owner);
        await work?.();
        await ended;
      }),
    ),
  );
  await until(() => owners.length === count, 'all of them read');
  await answered(client);
  end();
  await Promise.all(sections);
  return owners;
}

/** A client that has kept a read half since so many reads. */
async function kept(count = 1, ...settings: Parameters<typeof bench>): Promise<Bench> {
  const on = await bench(...settings);
  await reads(on, count);
  return on;
}

/** The scripts that the client sends while `work` runs. */
async function sent({ proxy }: Bench, work: () => Promise<unknown>): Promise<string[]> {
  const before = proxy.log.length;
  await inFlow(work);
  return proxy.log.slice(before).flatMap(({ name, args }) => (name === 'EVALSHA' ? (NAMES[args[0]!] ?? []) : []));
}

const read = ({ both }: Bench): Promise<unknown> => inFlow(() => both.readLock().withLock(() => undefined));

const isFree = (name: string): Promise<void> =>
  until(async () => (await admin().keys(`*${name}*`)).length === 0, 'no key is left');

/** A call of another client that waits for the write half. */
async function writerElsewhere(name: string): Promise<{ entered: Promise<number>; other: LockClient }> {
  const other = await openClient();
  const asked = performance.now();
  const entered = inFlow(() =>
    other
      .getReadWriteLock(name)
      .writeLock()
      .withLock(() => elapsed(asked)),
  );
  await until(async () => Number((await admin().pubsub('NUMSUB', readWriteChannel(name)))[1]) > 0, 'the writer waits');
  await answered(other);
  return { entered, other };
}

describe('a kept read half', () => {
  test('lets the next reads enter without a request, each with a hold and events of its own', async () => {
    const on = await kept();
    const { client, both, name } = on;
    const told: string[] = [];
    client.events.on('acquired', ({ handedOff, holdCount }) => told.push(`acquired ${handedOff} ${holdCount}`));
    client.events.on('released', () => told.push('released'));
    const fields = await admin().hgetall(name);
    const [owner] = Object.keys(fields).filter((field) => field !== 'mode');
    expect(fields).toEqual({ mode: 'read', [owner!]: '1' });
    const requests = await sent(on, async () => {
      for (const section of [1, 2, 3]) {
        const seen = await both
          .readLock()
          .withLock((hold) => [hold.owner, client.holds().length, hold.validFor() > 0, section]);
        expect(seen).toEqual([owner, 1, true, section]);
      }
      expect(await both.readLock().tryLock()).toBe(true);
      await both.readLock().unlock();
    });
    expect(requests).toEqual([]);
    expect(told).toEqual(Array.from({ length: 4 }, () => ['acquired true 1', 'released']).flat());
    expect(client.holds()).toEqual([]);
    expect(await admin().hgetall(name)).toEqual(fields);
    await client.close();
    await isFree(name);
  });

  test('has an owner for each of the reads that run at the same time', async () => {
    const on = await kept(3);
    let owners: string[] = [];
    expect(await sent(on, async () => (owners = await reads(on, 3)))).toEqual([]);
    expect(new Set(owners).size).toBe(3);
    expect(await sent(on, () => reads(on, 4))).toEqual(['acquire-read']);
    await on.client.close();
    await isFree(on.name);
  });

  test('needs `keep`: with `local` alone each read asks Redis, and its lease is its own', async () => {
    const on = await bench({ ...KEPT, keep: 0 });
    const requests = await sent(on, async () => {
      await on.both.readLock().withLock({ leaseTime: 1_000 }, async () => {
        expect(await admin().pttl(on.name)).toBeLessThanOrEqual(1_000);
      });
      await read(on);
    });
    expect(requests).toEqual(['acquire-read', 'release', 'acquire-read', 'release']);
  });

  test('is released after `keep` ms', async () => {
    const on = await kept(2, { ...KEPT, keep: BRIEF_MS });
    await isFree(on.name);
  });

  test('is a member of a multi-lock, too', async () => {
    const on = await bench();
    const lock = on.client.getMultiLock(on.both.readLock(), on.client.getReadWriteLock(freshName()).readLock());
    const section = (): Promise<unknown> => inFlow(() => lock.withLock(() => answered(on.client)));
    await section();
    expect(await sent(on, section)).toEqual([]);
  });

  test.each<[string, (on: Bench) => unknown]>([
    ['close()', ({ client }) => client.close()],
    ['the end of the process', () => process.emit('beforeExit', 0)],
    ['forceUnlock() of this client', ({ both }) => both.readLock().forceUnlock()],
  ])('is released by %s', async (_, end) => {
    const on = await kept(2);
    await end(on);
    await isFree(on.name);
  });
});

describe('the next read asks Redis', () => {
  test.each<[string, (on: Bench) => unknown]>([
    [
      'a cut connection',
      async ({ client, proxy }) => {
        proxy.cut({ kind: 'command' });
        await until(async () => (await outcome(client.ready())) === 'ok', 'the client has connected again');
        await answered(client);
      },
    ],
    ['a jump of the clock', ({ clock }) => clock.jumpWall(100)],
  ])('after %s', async (_, fault) => {
    const on = await kept();
    await fault(on);
    expect(await sent(on, () => read(on))).toContain('acquire-read');
  });

  test('for a longer lease, beside the kept readers', async () => {
    const on = await kept();
    const requests = await sent(on, async () => {
      const hold = await on.both.readLock().acquire({ leaseTime: 120_000 });
      expect(await admin().hlen(on.name)).toBe(3);
      await hold.release();
    });
    expect(requests).not.toContain('release');
  });

  test('after a nested read', async () => {
    const on = await bench();
    const nested = (): Promise<unknown> => inFlow(() => on.both.readLock().withLock(() => read2(on)));
    const read2 = ({ both }: Bench): Promise<unknown> => both.readLock().withLock(() => answered(on.client));
    expect(await sent(on, nested)).toContain('release');
    await isFree(on.name);
  });

  test('after a lost reply, while an attempt of the acquire may still run', async () => {
    const on = await kept(1, KEPT, { commandTimeout: 9_000 });
    on.proxy.cutAfter({ sha: scripts.acquireRead.script!.sha });
    const hold = await inFlow(() => on.both.readLock().acquire({ leaseTime: 60_000 }));
    expect(await sent(on, () => hold.release())).toContain('release');
  });

  test('after a renewal', async () => {
    const on = await bench({ ...KEPT, local: 1_400, keep: 1_400 }, { lockWatchdogTimeout: 1_500 });
    const hold = await inFlow(() => on.both.readLock().acquire());
    await until(() => on.client.stats().renewals > 0, 'the hold is renewed');
    expect(await sent(on, () => hold.release())).toContain('release');
  });
});

describe('a streak of reads', () => {
  /** Shorter than the time after which the watchdog renews. */
  const LOCAL_MS = 5_000;

  /** Time does not pass there, unless the test says so. */
  async function timed(): Promise<Bench & { fake: FakeClock }> {
    const fake = new FakeClock();
    const { proxy, url } = await openProxy();
    const client = await openClient({
      url,
      clock: fake,
      handOff: { local: LOCAL_MS, keep: LOCAL_MS, maxTime: 60_000 },
      // No attempt is over while a reply is stalled.
      commandTimeout: 60_000,
    });
    const name = freshName();
    return { proxy, client, clock: new TestClock(), fake, both: client.getReadWriteLock(name), name };
  }

  test('counts from the question whether others wait, and not from its answer', async () => {
    const on = await timed();
    const first = await inFlow(() => on.both.readLock().acquire());
    const late = on.proxy.stall({ kind: 'command', direction: 'to-client' });
    await on.fake.advance(0.6 * LOCAL_MS);
    late.lift();
    await answered(on.client);
    const second = await inFlow(() => on.both.readLock().acquire());
    await on.fake.advance(0.5 * LOCAL_MS);
    expect(await sent(on, () => second.release())).toEqual(['release']);
    await first.release();
  });

  test('ends with its time, also for a reader that was kept late in it, and the next read asks again', async () => {
    const on = await timed();
    await reads(on, 1);
    await on.fake.advance(0.6 * LOCAL_MS);
    await reads(on, 2);
    expect(await admin().hlen(on.name)).toBe(3);
    await on.fake.advance(0.5 * LOCAL_MS);
    await isFree(on.name);
    expect(await sent(on, () => reads(on, 1))).toEqual(['acquire-read', 'others-wait']);
    expect(await sent(on, () => read(on))).toEqual([]);
  });
});

describe('the halves', () => {
  test('a kept reader may not become a writer: the upgrade is refused inside a read that followed', async () => {
    const on = await kept();
    const code = await inFlow(() => on.both.readLock().withLock(() => outcome(on.both.writeLock().tryLock())));
    expect(code).toBe('ERR_LOCK_UPGRADE');
  });

  test('a read that followed may nest reads, and Redis counts them', async () => {
    const on = await kept();
    const counts = await inFlow(() =>
      on.both.readLock().withLock((hold) => on.both.readLock().withLock(() => admin().hget(on.name, hold.owner))),
    );
    expect(counts).toBe('2');
    await isFree(on.name);
  });

  test('a writer that has become a reader is released', async () => {
    const on = await bench();
    await inFlow(async () => {
      const writer = await on.both.writeLock().acquire();
      await writer.run(async () => {
        const reader = await on.both.readLock().acquire();
        await writer.release();
        expect(await admin().hget(on.name, 'mode')).toBe('read');
        await reader.release();
      });
    });
    await isFree(on.name);
  });

  test.each([{ waitTime: 1_000 }, { waitTime: 0 }])('a writer of this client enters at once (%j)', async (call) => {
    const on = await kept(3);
    const asked = performance.now();
    const hold = await inFlow(() => on.both.writeLock().tryAcquire(call));
    expect(elapsed(asked)).toBeLessThan(KEPT.keep / 2);
    expect(Object.keys(await admin().hgetall(on.name))).toEqual(['mode', `${hold!.owner}:write`]);
    await hold!.release();
  });

  test('while a writer of this client waits, reads are not kept', async () => {
    const on = await kept();
    const reader = await inFlow(() => on.both.readLock().acquire());
    const writer = inFlow(() => on.both.writeLock().acquire());
    await until(() => on.client.stats().waiting > 0, 'the writer waits');
    expect(await sent(on, () => reader.release())).toContain('release');
    await (await writer).release();
  });
});

describe('a writer of another client', () => {
  test('enters `local` ms after the question whether others wait, however many reads overlap', async () => {
    const on = await kept(1, { ...KEPT, local: BRIEF_MS, keep: BRIEF_MS });
    let done = false;
    // Reads of 1 ms with pauses: without kept readers, the lock is often free.
    const loops = Array.from({ length: 4 }, () =>
      inFlow(async () => {
        while (!done) {
          await on.both.readLock().withLock(() => pause(1));
          await pause(20 * Math.random());
        }
      }),
    );
    await until(() => on.client.stats().handOvers > 4, 'reads follow kept ones');
    const { entered } = await writerElsewhere(on.name);
    expect(await entered).toBeLessThan(4 * (BRIEF_MS + SLACK_MS));
    done = true;
    await Promise.all(loops);
  });

  test('that waits before the first read is known to the client: no read stays', async () => {
    const on = await bench();
    const reader = await openClient();
    const elsewhere = await inFlow(() => reader.getReadWriteLock(on.name).readLock().acquire());
    const { entered } = await writerElsewhere(on.name);
    const requests = await sent(on, async () => {
      for (let i = 0; i < 3; i += 1) await on.both.readLock().withLock(() => answered(on.client));
    });
    expect(requests.filter((name) => name === 'release')).toHaveLength(3);
    expect(requests.filter((name) => name === 'others-wait')).toHaveLength(1);
    await elsewhere.release();
    await entered;
  });

  test('is asked for again when `maxSections` reads have followed', async () => {
    const on = await kept(1, { ...KEPT, maxSections: 2 });
    const asked = (): number => on.proxy.log.filter(({ args }) => NAMES[args[0]!] === 'others-wait').length;
    await read(on);
    expect(asked()).toBe(1);
    await read(on);
    expect(asked()).toBe(2);
    await answered(on.client);
    expect(await sent(on, () => read(on))).toContain('acquire-read');
  });
});

test('kept readers exclude the writers of other processes, and writers exclude them', async () => {
  const [url, name] = [testRedisUrl(), freshName()];
  const seen = `${name}-seen`;
  const module = new URL('./fixtures/readers-and-writers.mjs', import.meta.url);
  const workers = await Promise.all([startWorker(), startWorker(), startWorker()]);
  const handOff = { local: 40, keep: 20 };
  await Promise.all(workers.map((each) => each.createClient({ url, handOff })));
  const rounds = 40;
  const load = { url, name, readers: 4, writers: 1, rounds, seen };
  const results = (await Promise.all(workers.map((each) => each.run(module, load)))) as {
    clashes: string[];
    handOvers: number;
  }[];
  expect(results.flatMap(({ clashes }) => clashes)).toEqual([]);
  expect(Number(await admin().hget(seen, 'value'))).toBe(workers.length * rounds);
  expect(results.reduce((sum, { handOvers }) => sum + handOvers, 0)).toBeGreaterThan(0);
  await Promise.all(workers.map((each) => each.close()));
  await admin().del(seen);
  await isFree(name);
});
