import { afterEach, expect, test } from '@jest/globals';
import { startWorker } from '../support/processes/child.js';
import { runFixture } from '../support/processes/fixture-process.js';
import {
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
  outcome,
  pause,
  TestClock,
} from '../support/clients/lock-clients.js';
import { Random } from '../support/random.js';
import { admin, expectNothingLeft, freshName, testRedisUrl } from '../support/redis.js';
import { PARKED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';
import { contendedCycles } from './contended-cycles.js';
import { expectNoOverlap } from '../support/serious.js';

afterEach(() => closeClients());

/** The watchdog's next tick, which stops itself, and the deadline of the last command. */
const TIMERS_OF_A_CLIENT = 2;
/** Ends a process that hangs; alone it takes 25 s, on a crowded machine three times that. */
const CYCLES_LIMIT_MS = 150_000;

test('R20: 3,000 contended cycles over 300 names leave no key, channel, timer or listener, and a flat heap', async () => {
  const result = await contendedCycles(
    new Random('R20'),
    3_000,
    Array.from({ length: 300 }, () => freshName()),
  );
  expectNoOverlap(result.overlaps + result.lostUpdates);
  expect(result.listeners).toBe(0);
  expect(result.granted).toBeGreaterThan(500);
  expect(result.busy).toBeGreaterThan(50);
  expect(result.aborted).toBeGreaterThan(50);
  expect(result.heapGrowthBytes).toBeLessThan(3_000_000);
  expect(result.holds()).toBe(0);
  await until(async () => (await admin().exists(...result.names)) === 0, 'no key is left');
  await expectNothingLeft();
  expect(result.timers()).toBeLessThanOrEqual(2 * TIMERS_OF_A_CLIENT);
});

interface AtRest {
  readonly sockets: number;
  readonly timers: number;
  readonly channels: number;
}

test(
  'R20: 5,184 contended names of every kind leave heap, sockets, timers and channels as they were after 72',
  async () => {
    const parts = 72;
    const namesOfPart = 6;
    const kinds = 12;
    const said = await runFixture<{
      counts: Record<'granted' | 'busy' | 'aborted', number>;
      heaps: number[];
      first: AtRest;
      last: AtRest;
      warnings: string[];
    }>(
      'cycles-of-kinds.mjs',
      [testRedisUrl(), freshName('cycles'), String(parts), String(namesOfPart)],
      ['--expose-gc'],
      CYCLES_LIMIT_MS,
    );
    const { granted, busy, aborted } = said.counts;
    expect(granted + busy + aborted).toBe(4 * parts * namesOfPart * kinds);
    expect(Math.min(busy, aborted)).toBeGreaterThan(500);
    expect(said.warnings).toEqual([]);
    expect(said.last).toEqual({ ...said.first, channels: 0, timers: expect.any(Number) });
    expect(said.last.timers).toBeLessThanOrEqual(2 * TIMERS_OF_A_CLIENT);
    // Up to 1,024 idle entries are kept and then swept, so the heap is a saw, and every quarter has a low. By the second
    // quarter all code is warm; from there to the last, 2,592 names later, it rises by 0.1 to 0.4 MB. 200 bytes for each
    // name at each client would be 1 MB, the lines of fair locks alone 1 MB, entries that are never swept more than 6 MB.
    const lowest = (quarter: number): number =>
      Math.min(...said.heaps.slice(((quarter - 1) * parts) / 4, (quarter * parts) / 4));
    expect(lowest(4) - lowest(2)).toBeLessThan(800_000);
  },
  CYCLES_LIMIT_MS + 10_000,
);

test.each(['a time-out', 'abort', 'grant'] as const)(
  'R20: a wait behind a lease of one hour that ends by %s leaves no timer',
  async (end) => {
    const clock = new TestClock();
    const [client, other] = [await openClient({ clock }), await openClient()];
    const name = freshName();
    const holder = await holdElsewhere(other.getLock(name), 3_600_000);
    const controller = new AbortController();
    const waiting = outcome(
      inFlow(async () => {
        const waitTime = end === 'a time-out' ? 60 : undefined;
        const hold = await client.getLock(name).acquire({ waitTime, signal: controller.signal, leaseTime: 3_600_000 });
        await hold.release();
      }),
    );
    await pause(PARKED_MS);
    if (end === 'abort') controller.abort();
    if (end === 'grant') await holder.release();
    expect(await waiting).toBe({ 'a time-out': 'ERR_LOCK_TIMEOUT', abort: 'ERR_LOCK_ABORTED', grant: 'ok' }[end]);
    if (end !== 'grant') await holder.release();
    await expectNothingLeft();
    await until(() => clock.timers === (end === 'grant' ? 1 : 0), 'no timer is left', 1_500);
  },
);

test('R20: a thousand waits on one signal raise no warning about listeners', async () => {
  const worker = await startWorker();
  try {
    await worker.createClient({ url: testRedisUrl() });
    const name = freshName();
    const holder = worker.flow('holder');
    const outer = await holder.acquire(name);
    // In line, and for their turn inside the hold.
    const waits = Array.from({ length: 500 }, (_, i) => worker.flow(`w${i}`).acquire(name, { signal: 'stop' }));
    const branch = await holder.fork('branch');
    const inner = await branch.acquire(name);
    const branches: Promise<unknown>[] = [];
    for (let i = 0; i < 20; i += 1) branches.push((await holder.fork(`b${i}`)).acquire(name, { signal: 'stop' }));
    const outcomes = [...waits, ...branches].map(outcome);
    await pause(PARKED_MS);
    await worker.abort('stop');
    expect(new Set(await Promise.all(outcomes))).toEqual(new Set(['ERR_LOCK_ABORTED']));
    await branch.release(inner);
    await holder.release(outer);
    expect(worker.events.filter(({ type }) => type === 'warning')).toEqual([]);
  } finally {
    await worker.close();
  }
});

test.each(['abort', 'close()'])(
  'R23: a call whose turn comes with the release of its parent rejects because of the earlier %s',
  async (how) => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const lock = client.getLock(freshName());
    await inFlow(async () => {
      const outer = await lock.acquire({ leaseTime: 20_000 });
      const controller = new AbortController();
      const slow = proxy.holdReply({ contains: lock.name });
      const extended = outcome(outer.extend(30_000));
      const nested = outcome(lock.acquire({ signal: controller.signal }));
      await slow.applied;
      const released = outcome(outer.release());
      if (how === 'abort') controller.abort();
      else void client.close({ releaseHolds: true });
      slow.lift();
      await Promise.all([extended, released]);
      expect(await nested).toBe(how === 'abort' ? 'ERR_LOCK_ABORTED' : 'ERR_LOCK_CLIENT_CLOSED');
    });
    expect(await admin().exists(lock.name)).toBe(0);
  },
);
