import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { startWorker, type Worker, type WorkerOptions } from './child.js';
import { check } from '../history/history.js';
import { stamp } from '../history/history-recorder.mjs';
import { admin, freshName, leavesKeys, testRedisUrl } from '../redis.js';
import { SharedCounter } from './shared-counter.js';
import { until } from '../time/until.js';

const workers: Worker[] = [];
let counter: SharedCounter;
let name: string;

async function start(options?: WorkerOptions): Promise<Worker> {
  const worker = await startWorker(options);
  workers.push(worker);
  await worker.createClient({ url: testRedisUrl(), lockWatchdogTimeout: 1_500 });
  return worker;
}

beforeEach(async () => {
  counter = await SharedCounter.start();
  name = freshName();
});
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.close()));
  await counter.close();
});
leavesKeys('a worker that is killed releases nothing');

const holders = async (): Promise<string[]> => Object.keys(await admin().hgetall(name));

test('a flow locks, nests and unlocks in a process of its own, and another flow is a stranger to it', async () => {
  const worker = await start();
  const flow = worker.flow('a');
  const hold = await flow.lock(name);
  const nested = await flow.tryLock(name, 0, 60_000);
  expect(nested?.owner).toBe(hold.owner);
  expect(await admin().hget(name, hold.owner)).toBe('2');
  expect(await flow.call(name, 'getHoldCount')).toBe(2);
  const stranger = worker.flow('b');
  expect(await stranger.tryLock(name)).toBeUndefined();
  await expect(stranger.unlock(name)).rejects.toMatchObject({ name: 'NotOwnerError', code: 'ERR_LOCK_NOT_OWNER' });
  await flow.unlock(name);
  await flow.unlock(name);
  expect(await holders()).toEqual([]);
});

test('holds are released, extended and entered by name, and a forked flow is inside', async () => {
  const worker = await start();
  const flow = worker.flow('a');
  const hold = await flow.acquire(name, { leaseTime: 5_000 });
  await flow.extend(hold, 60_000);
  expect((await worker.hold(hold.hold)).validFor).toBeGreaterThan(50_000);
  await worker.flow('b').run(hold);
  expect(await worker.flow('b').call(name, 'isHeldByCurrentContext')).toBe(true);
  await worker.flow('b').leave();
  expect(await worker.flow('b').call(name, 'isHeldByCurrentContext')).toBe(false);
  const child = await flow.fork('child');
  const inner = await child.enter(name);
  expect(inner.owner).toBe(hold.owner);
  await expect(child.leave('its body failed')).rejects.toThrow('its body failed');
  await worker.flow('c').release(hold);
  expect(await holders()).toEqual([]);
});

test('a wait is aborted by the name of its signal', async () => {
  const [holder, waiter] = [await start(), await start()];
  await holder.flow('a').lock(name);
  const waiting = waiter.flow('a').lock(name, undefined, { signal: 's' });
  const rejected = expect(waiting).rejects.toMatchObject({ name: 'AbortError', code: 'ERR_LOCK_ABORTED' });
  await until(
    async () => ((await admin().pubsub('NUMSUB', `redisson_lock__channel:{${name}}`)) as number[])[1] === 1,
    'it waits',
  );
  await waiter.abort('s');
  await rejected;
});

test('sections of two processes, also nested ones, never overlap, and the history confirms it', async () => {
  const both = [await start({ history: true }), await start({ history: true })];
  const load = { locks: [name], port: counter.port, flows: 3, rounds: 15 };
  const results = await Promise.all([
    both[0]!.contend({ ...load, form: 'withLock', nested: true }),
    both[0]!.contend({ ...load, form: 'lock' }),
    both[1]!.contend({ ...load, form: 'tryLock', waitTime: 20_000, nested: true }),
  ]);
  expect(results).toEqual(Array(3).fill({ sections: 45, busy: 0, failures: {} }));
  expect(counter.value(name)).toBe(135);
  expect(counter.mostHolders(name)).toBe(1);
  expect(counter.overlaps).toEqual([]);
  const history = both.flatMap((worker) => worker.history());
  expect(history.filter(({ type }) => type === 'acquire-ok')).toHaveLength(135 + 90);
  expect(check(history)).toEqual([]);
});

test('without a lock the same sections overlap, and the counter shows it', async () => {
  const worker = await start();
  const sections = Array.from({ length: 20 }, (_, i) =>
    worker.flow(`flow-${i}`).section(counter.port, name, `flow-${i}`, 5),
  );
  await Promise.all(sections);
  expect(counter.overlaps.length).toBeGreaterThan(0);
  expect(counter.mostHolders(name)).toBeGreaterThan(1);
  expect(counter.value(name)).toBeLessThan(counter.sections(name));
});

test('a killed process holds nothing, and its history ends with its death', async () => {
  const worker = await start({ history: true });
  const inside = worker.flow('a');
  await inside.lock(name, 60_000);
  void inside.section(counter.port, name, 'a', 60_000).catch(() => undefined);
  await until(() => counter.holders(name).length === 1, 'it is inside');
  await worker.kill9();
  expect(worker.running).toBe(false);
  await until(() => counter.holders(name).length === 0, 'the dead is not inside');
  const types = worker.history().map(({ type }) => type);
  // A busy machine may delay the worker at any time, and the worker reports the delay.
  expect(types.filter((type) => type !== 'stalled')).toEqual(['acquire-invoke', 'acquire-ok', 'died']);
  expect(check(worker.history())).toEqual([]);
  await expect(worker.flow('a').unlock(name)).rejects.toThrow('has ended');
});

test('a process that is stopped for longer than its lease reports the loss when it continues', async () => {
  const worker = await start({ history: true });
  const flow = worker.flow('a');
  const hold = await flow.lock(name, 300);
  await worker.pause();
  await until(async () => (await holders()).length === 0, 'the lease has ended');
  const unlocking = expect(flow.unlock(name)).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
  worker.resume();
  await unlocking;
  const event = await worker.nextEvent('leaseLost');
  expect(event.detail).toMatchObject({ lockName: name, owner: hold.owner });
  await worker.nextEvent(({ type, detail }) => type === 'signal' && detail.hold === hold.hold);
  expect(worker.history().map(({ type }) => type)).toContain('loss-signal');
  expect(check(worker.history())).toEqual([]);
});

test('a process on a sleeping machine has a stopped monotonic clock and loses the leases that ended', async () => {
  const worker = await start({ history: true });
  const flow = worker.flow('a');
  await flow.lock(name, 300);
  const { wallMs, monotonicMs } = await worker.sleep(600);
  expect(wallMs).toBeGreaterThanOrEqual(600);
  expect(monotonicMs).toBeLessThan(300);
  await expect(flow.unlock(name)).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
  await worker.nextEvent('leaseLost');
  expect(check(worker.history())).toEqual([]);
});

test('a changed wall clock leaves a hold unconfirmed until Redis confirms it', async () => {
  const worker = await start({ history: true });
  const flow = worker.flow('a');
  const { hold } = await flow.lock(name);
  for (const ms of [3_600_000, -7_200_000]) {
    await worker.setClock(ms);
    const forward = ms > 0;
    const doubted = worker.history().some((event) => event.type === 'valid' && event.until === event.at);
    expect(doubted).toBe(true); // by the first one; going back raises no doubt
    await until(async () => (await worker.hold(hold)).validFor > 0, `confirmed after going ${forward ? 'on' : 'back'}`);
  }
  await flow.unlock(name);
  expect(await holders()).toEqual([]);
  expect(check(worker.history())).toEqual([]);
});

test('a block of the event loop ends before the call returns and is in the history', async () => {
  const worker = await start({ history: true });
  await worker.flow('a').lock(name, 100);
  const { from, until: end } = await worker.block(300);
  expect(end - from).toBeGreaterThanOrEqual(300);
  await worker.nextEvent('leaseLost');
  await until(() => worker.history().some(({ type }) => type === 'stalled'), 'the stall is written down');
  expect(check(worker.history())).toEqual([]);
  expect(worker.events.filter(({ type }) => type === 'unhandledRejection')).toEqual([]);
});

test('a process that is killed while its event loop is blocked has done nothing since the block began', async () => {
  const worker = await start({ history: true });
  const before = stamp();
  const blocked = worker.block(60_000).catch(() => undefined);
  const after = stamp();
  await worker.kill9();
  await blocked;
  const died = worker.history().find(({ type }) => type === 'died')!;
  expect(died.at).toBeGreaterThanOrEqual(before);
  expect(died.at).toBeLessThanOrEqual(after);
});

test('a client can use a connection with its own options, and the process reports its resources', async () => {
  const worker = await start({ execArgv: ['--expose-gc'] });
  const { hostname, port, pathname } = new URL(testRedisUrl());
  const redisOptions = { host: hostname, port: Number(port), db: Number(pathname.slice(1)), stringNumbers: true };
  await worker.createClient({ redisOptions }, 'other');
  const flow = worker.flow('a', 'other');
  await flow.lock(name);
  expect(await holders()).toHaveLength(1);
  await flow.unlock(name);
  const { heapUsed, active } = await worker.resources();
  expect(heapUsed).toBeGreaterThan(0);
  expect(active).toContain('TCPSocketWrap');
});
