import { describe, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import { LockContext } from '../../src/ownership/lock-context.js';
import type { NoQuorumError } from '../../src/errors.js';
import { elapsed } from '../support/time/elapsed.js';
import { inFlow, outcome, pause } from '../support/clients/lock-clients.js';
import type { MonitorLine, MonitorLog } from '../support/servers/monitor-log.js';
import { LONG_QUIET_MS, QUIET_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';
import { clients, freeEverywhere, holders, open, servers, timed } from './red-lock-stage.js';
import { expectAtMost } from '../support/serious.js';

const COMMAND_TIMEOUT_MS = 9_000;
/** Time that a hanging server costs a waiting call: one attempt. */
const ATTEMPT_MS = COMMAND_TIMEOUT_MS / 3;

/** The call needs a majority, so the last reply may be pending. Waits for it, because only a held part can be lost. */
const allHaveIt = (members: readonly LockClient[]): Promise<void> =>
  until(() => members.every((client) => client.holds().length === 1), 'each member is held');

describe('R28: a RedLock', () => {
  test('is held on all servers with one owner each, re-enters, and is released on all of them', async () => {
    const { lock, clients: opened, name } = await open();
    await lock.withLock(async (hold) => {
      await allHaveIt(opened);
      expect(await holders(name)).toEqual([1, 1, 1]);
      expect(hold.owner.split(', ')).toHaveLength(3);
      await lock.lock();
      expect(await lock.getHoldCount()).toBe(2);
      await lock.unlock();
      expect(await lock.isHeldBy(hold.owner)).toBe(true);
    });
    await until(async () => (await holders(name)).every((held) => held === 0), 'it is free everywhere');
  });

  test('includes a grant that arrives together with the majority', async () => {
    const { clients: opened, name } = await open();
    // One connection: its three answers come together.
    const client = opened[0]!;
    const members = [1, 2, 3].map((n) => `${name}:${n}`);
    const lock = client.getRedLock(...members.map((member) => client.getLock(member)));
    const hold = await lock.acquire();
    const held = await Promise.all(members.map((member) => servers[0]!.command('HLEN', member)));
    expect(held.map(Number)).toEqual([1, 1, 1]);
    await hold.release();
  });

  test('is valid for its lease, less the time passed and the drift', async () => {
    const { lock } = await open({ red: { driftFactor: 0.1 } });
    const began = performance.now();
    const hold = await lock.acquire({ leaseTime: 10_000 });
    expect(hold.validFor()).toBeLessThanOrEqual(10_000 - 1_002);
    expect(hold.validFor()).toBeGreaterThan(10_000 - 1_002 - (performance.now() - began) - 1);
    await hold.release();
  });

  test('sends its requests to all servers at the same time', async () => {
    const { lock, ...red } = await open();
    await lock.withLock(() => undefined);
    await freeEverywhere(red);
    const logs = await Promise.all(servers.map((server) => server.monitor()));
    const asked = (log: MonitorLog): MonitorLine | undefined => log.lines.find(({ args }) => args.includes(red.name));
    await servers[0]!.pause();
    const hold = await inFlow(async () => lock.acquire());
    await until(() => logs.slice(1).every(asked), 'the others have run it');
    servers[0]!.resume();
    await until(() => logs.every(asked), 'so has the first');
    const [first, ...others] = logs.map(asked);
    for (const log of logs) log.stop();
    // The others did not wait for it.
    for (const line of others) expect(line!.time).toBeLessThan(first!.time);
    await hold.release();
  });

  test('with one of three hanging: acquired and released without waiting for an attempt to time out', async () => {
    const { lock, ...red } = await open({ commandTimeout: COMMAND_TIMEOUT_MS });
    await lock.withLock(() => undefined);
    for (const at of [0, 1, 2]) {
      await freeEverywhere(red);
      await servers[at]!.pause();
      const took: number[] = [];
      for (let round = 0; round < 5; round += 1) {
        const entered = await timed(lock.acquire());
        took.push(entered.ms, (await timed(entered.value.release())).ms);
      }
      expect(Math.max(...took)).toBeLessThan(ATTEMPT_MS);
      servers[at]!.resume();
      // Its grant is released: the lock is free there.
      await freeEverywhere(red);
    }
  });

  test.each([0, 1, 2])('R28: with server %i hanging: extended and released without waiting for it', async (at) => {
    const { lock, ...red } = await open({ commandTimeout: COMMAND_TIMEOUT_MS });
    const hold = await inFlow(async () => lock.acquire({ leaseTime: 10_000 }));
    await until(() => red.clients.every((client) => client.holds().length === 1), 'each member is held');
    await servers[at]!.pause();
    expect((await timed(hold.extend(60_000))).ms).toBeLessThan(ATTEMPT_MS);
    expect(hold.validFor()).toBeGreaterThan(50_000);
    expect((await timed(hold.release())).ms).toBeLessThan(ATTEMPT_MS);
    servers[at]!.resume();
    await freeEverywhere(red);
  });

  test('R28: an extend() without a majority fails when the last server has replied, and not before', async () => {
    const { lock, name, ...red } = await open({ commandTimeout: COMMAND_TIMEOUT_MS });
    const hold = await inFlow(async () => lock.acquire({ leaseTime: 10_000 }));
    await until(() => red.clients.every((client) => client.holds().length === 1), 'each member is held');
    await servers[2]!.pause();
    for (const at of [0, 1]) await servers[at]!.command('DEL', name);
    const { signal } = hold;
    let settled = false;
    const call = outcome(hold.extend(60_000)).finally(() => (settled = true));
    await until(() => signal.aborted, 'two have said that it is gone');
    await new Promise((resume) => setImmediate(resume));
    expect(settled).toBe(false);
    servers[2]!.resume();
    expect(await call).toBe('ERR_LOCK_LOST');
    expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
    await freeEverywhere({ ...red, name });
  });

  test.each([0, 1, 2])('with server %i hanging: consecutive calls with one context are granted at once', async (at) => {
    const { lock, ...red } = await open({ commandTimeout: COMMAND_TIMEOUT_MS });
    await lock.withLock(() => undefined);
    await freeEverywhere(red);
    const context = new LockContext();
    await servers[at]!.pause();
    for (let round = 0; round < 3; round += 1) {
      for (const waitTime of [undefined, 5_000]) {
        const { value, ms } = await timed(lock.tryLock({ waitTime, context }));
        expect(value).toBe(true);
        expect(ms).toBeLessThan(ATTEMPT_MS);
        await lock.unlock({ context });
      }
    }
    servers[at]!.resume();
    await freeEverywhere(red);
  });

  test('two concurrent calls with one context: the second is refused, also if the first only waits', async () => {
    const { lock, name } = await open();
    const holder = await open({ name });
    const hold = await inFlow(async () => holder.lock.acquire());
    const context = new LockContext();
    const first = inFlow(() => outcome(lock.lock({ context })));
    await pause(QUIET_MS);
    expect(await outcome(inFlow(() => lock.tryLock({ context })))).toBe('ERR_LOCK_CONCURRENT_CONTEXT');
    await hold.release();
    expect(await first).toBe('ok');
    await lock.unlock({ context });
  });

  test('with one server down: waiters are woken, and the lock is handed over', async () => {
    const { lock, name } = await open({ commandTimeout: 1_500 });
    const other = await open({ name, commandTimeout: 1_500 });
    const hold = await inFlow(async () => lock.acquire());
    await servers[0]!.pause();
    const waits = inFlow(async () => other.lock.acquire({ waitTime: 20_000 }));
    await pause(LONG_QUIET_MS);
    const released = performance.now();
    await hold.release();
    const taken = await waits;
    expect(elapsed(released)).toBeLessThan(3_000);
    servers[0]!.resume();
    await taken.release();
  });

  test('held by another owner on two of three: false, and nothing stays held on the third', async () => {
    const {
      lock,
      clients: [a, b],
      name,
    } = await open();
    const holds = [
      await inFlow(async () => a!.getLock(name).acquire()),
      await inFlow(async () => b!.getLock(name).acquire()),
    ];
    expect(await lock.tryLock()).toBe(false);
    expect(await lock.tryLock(200)).toBe(false);
    expect(await outcome(lock.acquire({ waitTime: 50 }))).toBe('ERR_LOCK_TIMEOUT');
    await until(async () => String(await holders(name)) === '1,1,0', 'nothing is kept on the third');
    await Promise.all(holds.map((hold) => hold.release()));
  });

  test('held by another owner on one of three: the majority grants it', async () => {
    const {
      lock,
      clients: [, b],
      name,
    } = await open();
    const hold = await inFlow(async () => b!.getLock(name).acquire());
    expect(await lock.tryLock()).toBe(true);
    expect(await lock.isHeldByCurrentContext()).toBe(true);
    await lock.unlock();
    await hold.release();
  });

  test.each([0, 1, 2])(
    'R21: a waiter at a server that stays held (server %i) acquires soon after a majority becomes free elsewhere',
    async (stays) => {
      const { clients: holders, name } = await open();
      const other = await open({ name });
      const hold = (at: number): Promise<Hold> => inFlow(async () => holders[at % 3]!.getLock(name).acquire());
      const [kept, freed] = [await hold(stays), await hold(stays + 1)];
      const began = performance.now();
      const waits = inFlow(async () => other.lock.acquire({ waitTime: 20_000 }));
      await pause(LONG_QUIET_MS);
      await freed.release();
      const entered = await waits;
      expect(elapsed(began)).toBeLessThan(2_000 + 2_000); // 2,000 in the line of one server
      const asked = performance.now();
      const again = await inFlow(() => timed(outcome(other.lock.acquire({ waitTime: 2_500 }))));
      expect(again.value).toBe('ERR_LOCK_TIMEOUT');
      // The wait time of a call does not depend on the number of its requests.
      expect(performance.now() - asked).toBeGreaterThan(2_500 - 50);
      expect(again.ms).toBeLessThan(2_500 + 2_000);
      await entered.release();
      await kept.release();
    },
  );

  test('two of three hanging: NoQuorumError with a result per server, and nothing held then or later', async () => {
    const { lock, name } = await open({ commandTimeout: 900 });
    await lock.withLock(() => undefined);
    await servers[1]!.pause();
    await servers[2]!.pause();
    for (const call of [() => lock.tryLock(), () => lock.lock(), () => lock.tryLock(300, 5_000)]) {
      const { value: error, ms } = await timed(
        inFlow(() =>
          call().then(
            () => undefined,
            (reason: unknown) => reason,
          ),
        ),
      );
      expect(error).toMatchObject({ code: 'ERR_LOCK_NO_QUORUM', quorum: 2 });
      const { results } = error as NoQuorumError;
      expect(results.map(({ server }) => server)).toEqual([0, 1, 2]);
      expect(results.filter(({ outcome }) => outcome === 'failed')).toHaveLength(2);
      expect(ms).toBeLessThan(300 + 2 * 900 + 1_000);
      expect(await servers[0]!.command('EXISTS', name)).toBe(0);
    }
    servers[1]!.resume();
    servers[2]!.resume();
    await pause(200);
    await until(async () => (await holders(name)).every((held) => held === 0), 'nothing is taken later');
  });

  test('an abort while it waits leaves nothing on any server', async () => {
    const { lock, name } = await open();
    const other = await open({ name });
    const hold = await inFlow(async () => lock.acquire());
    const abort = new AbortController();
    const waits = inFlow(() => outcome(other.lock.lock({ signal: abort.signal })));
    await pause(QUIET_MS);
    abort.abort();
    expect(await waits).toBe('ERR_LOCK_ABORTED');
    await hold.release();
    await until(async () => (await holders(name)).every((held) => held === 0), 'nothing is left');
  });

  test('two locks of one server are refused', async () => {
    const {
      clients: [a],
      name,
    } = await open();
    const again = createClient({ url: servers[0]!.url });
    clients.push(again);
    expect(() => a!.getRedLock(a!.getLock(name), again.getLock(name))).toThrow(/twice/);
    expect(() => a!.getRedLock()).toThrow(/at least one/);
    expect(() => a!.getRedLock(a!.getLock(name), { driftFactor: 2 })).toThrow(/driftFactor/);
  });
});

describe('a RedLock that is renewed', () => {
  test('survives one hanging server and is lost with the second: signal, validFor, unlock', async () => {
    const { lock, clients: opened } = await open({ lockWatchdogTimeout: 1_500, commandTimeout: 450 });
    const hold = await inFlow(async () => lock.acquire());
    await allHaveIt(opened);
    let aborts = 0;
    hold.signal.addEventListener('abort', () => (aborts += 1));
    const lostAt = opened.map((client) => new Promise<void>((lost) => client.events.on('leaseLost', () => lost())));
    await servers[2]!.pause();
    await lostAt[2];
    await pause(1_500);
    expect(hold.signal.aborted).toBe(false);
    expect(hold.validFor()).toBeGreaterThan(0);
    await servers[1]!.pause();
    await lostAt[1];
    expect(hold.signal.aborted).toBe(true);
    expect(aborts).toBe(1);
    expect(hold.signal.reason).toMatchObject({ code: 'ERR_LOCK_LOST', reason: 'expired' });
    expect(hold.validFor()).toBe(0);
    servers[1]!.resume();
    servers[2]!.resume();
    expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
    expect(aborts).toBe(1);
  });

  test.each([
    [[0], 'ok'],
    [[0, 2], 'ERR_LOCK_LOST'],
    [[0, 1, 2], 'ERR_LOCK_LOST'],
  ])('R10: deleted unnoticed on servers %j: its release reports %s', async (at, expected) => {
    const { lock, clients: opened, name } = await open();
    const hold = await inFlow(async () => lock.acquire({ leaseTime: 20_000 }));
    await allHaveIt(opened);
    await Promise.all(at.map((server) => servers[server]!.command('DEL', name)));
    expect(await outcome(hold.release())).toBe(expected);
    await until(async () => (await holders(name)).every((held) => held === 0), 'the rest is released');
  });

  test('R10: with the majority deleted, a hanging server does not delay the report of the loss', async () => {
    const { lock, clients: opened, name } = await open({ commandTimeout: COMMAND_TIMEOUT_MS });
    const hold = await inFlow(async () => lock.acquire({ leaseTime: 20_000 }));
    await allHaveIt(opened);
    for (const server of [0, 1]) await servers[server]!.command('DEL', name);
    await servers[2]!.pause();
    const { value, ms } = await timed(outcome(hold.release()));
    expect(value).toBe('ERR_LOCK_LOST');
    expect(ms).toBeLessThan(ATTEMPT_MS);
    servers[2]!.resume();
    await until(async () => (await holders(name)).every((held) => held === 0), 'the rest is released');
  });

  test('R28: its release rejects with the results if too few servers reply', async () => {
    const { lock, clients: opened, name } = await open({ commandTimeout: 600 });
    const hold = await inFlow(async () => lock.acquire({ leaseTime: 20_000 }));
    await allHaveIt(opened);
    for (const server of [1, 2]) await servers[server]!.pause();
    const { value, ms } = await timed(outcome(hold.release()));
    expect(value).toBe('ERR_LOCK_MULTI_UNLOCK');
    expect(ms).toBeLessThan(600 + 1_000);
    for (const server of [1, 2]) servers[server]!.resume();
    await until(async () => (await holders(name)).every((held) => held === 0), 'the rest is released');
  });

  test('lost on one server and then deleted on another: the majority is gone', async () => {
    const { lock, clients: opened, name } = await open({ lockWatchdogTimeout: 1_500 });
    const hold = await inFlow(async () => lock.acquire());
    await allHaveIt(opened);
    const lostAtFirst = new Promise<void>((told) => opened[0]!.events.on('leaseLost', () => told()));
    const lost = new Promise<void>((resolve) => hold.signal.addEventListener('abort', () => resolve()));
    await servers[0]!.command('DEL', name);
    await lostAtFirst;
    expect(hold.signal.aborted).toBe(false);
    await servers[1]!.command('DEL', name);
    await lost;
    expect(hold.signal.reason).toMatchObject({ code: 'ERR_LOCK_LOST', reason: 'gone' });
    expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
    await until(async () => (await holders(name)).every((held) => held === 0), 'the rest is released');
  });
});

test('nine flows of three sets of clients exclude each other around an unprotected counter', async () => {
  const name = 'red:of-nine-flows';
  const reds = await Promise.all(Array.from({ length: 3 }, () => open({ name, commandTimeout: 900 })));
  let counter = 0;
  let inside = 0;
  let most = 0;
  const flows = reds
    .flatMap(({ lock }) => [lock, lock, lock])
    .map((lock) =>
      inFlow(async () => {
        for (let round = 0; round < 15; round += 1) {
          await lock.withLock(async () => {
            inside += 1;
            most = Math.max(most, inside);
            const seen = counter;
            await pause(1);
            counter = seen + 1;
            inside -= 1;
          });
        }
      }),
    );
  await Promise.all(flows);
  expectAtMost(most);
  expect({ counter, most }).toEqual({ counter: 9 * 15, most: 1 });
});
