import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import { LockLostError } from '../../src/errors.js';
import type { Lock } from '../../src/locks/lock.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import {
  answered,
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
  outcome,
  pause,
} from '../support/clients/lock-clients.js';
import { Random } from '../support/random.js';
import { admin, freshName } from '../support/redis.js';
import { PARKED_MS, STARTED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

const ACQUIRE = scripts.acquire.script!.sha;
const NESTED = scripts.acquireNested.script!.sha;
const HAND_OFF = scripts.handOff.script!.sha;
const RELEASE = scripts.release.script!.sha;
const PARTIAL = scripts.releasePartial.script!.sha;

afterEach(() => closeClients());

/** The events of holds, in order. */
function listen(client: LockClient): string[] {
  const told: string[] = [];
  for (const type of ['acquired', 'released', 'leaseLost'] as const) {
    client.events.on(type, ({ owner }) => told.push(`${type} ${owner.split(':')[1]}`));
  }
  return told;
}

const count = (told: readonly string[], type: string): number => told.filter((each) => each.startsWith(type)).length;

describe('events', () => {
  test('a hand-over emits `released` of the previous owner before `acquired` of the next', async () => {
    const client = await openClient();
    const lock = client.getLock(freshName());
    const told: string[] = [];
    client.events.on('acquired', ({ holdCount, handedOff }) => told.push(`acquired ${holdCount} ${handedOff}`));
    client.events.on('released', ({ holdCount }) => told.push(`released ${holdCount}`));
    const first = await holdElsewhere(lock);
    const second = holdElsewhere(lock);
    await pause(STARTED_MS);
    await first.release();
    await (await second).release();
    expect(told).toEqual(['acquired 1 false', 'released 0', 'acquired 1 true', 'released 0']);
  });

  test.each([
    ['a try', ACQUIRE, false],
    ['a hand-off', HAND_OFF, false],
    ['a nested acquire', NESTED, true],
  ])('an aborted call emits no event, also if its grant by %s was pending', async (_, sha, nested) => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const lock = client.getLock(freshName());
    const outer = sha === ACQUIRE ? undefined : await holdElsewhere(lock);
    const told = listen(client);
    const { signal, abort } = abortable();
    const held = proxy.holdReply({ sha });
    const call = (): Promise<unknown> => outcome(lock.acquire({ signal }));
    const aborted = nested ? outer!.run(call) : inFlow(call);
    let released: Promise<void> | undefined;
    if (sha === HAND_OFF) {
      await until(() => client.holds().length === 1, 'it is held');
      await pause(STARTED_MS);
      released = outer!.release();
    }
    await held.applied;
    abort();
    await pause();
    held.lift();
    expect(await aborted).toBe('ERR_LOCK_ABORTED');
    await released;
    if (nested) await outer!.release();
    await until(async () => (await admin().exists(lock.name)) === 0, 'it is free');
    await answered(client);
    expect(told.map((each) => each.split(' ')[0])).toEqual(outer === undefined ? [] : ['released']);
  });

  test.each(['one after the other', 'together'])(
    'a deleted key that a nested release notices is reported once per hold and aborts each signal (released %s)',
    async (how) => {
      const client = await openClient();
      const lock = client.getLock(freshName());
      const told = listen(client);
      const outer = await holdElsewhere(lock);
      const middle = await outer.run(() => lock.acquire());
      const inner = await middle.run(() => lock.acquire());
      const holds = [inner, middle, outer];
      const signals = holds.map(({ signal }) => signal);
      await admin().del(lock.name);
      const released: Promise<unknown>[] = [];
      for (const hold of holds) {
        released.push(outcome(hold.release()));
        if (how !== 'together') await released.at(-1);
      }
      expect(await Promise.all(released)).toEqual(Array(3).fill('ERR_LOCK_LOST'));
      expect(count(told, 'leaseLost')).toBe(3);
      expect(count(told, 'released')).toBe(0);
      for (const { aborted, reason } of signals) {
        expect(aborted).toBe(true);
        expect(reason).toBeInstanceOf(LockLostError);
      }
    },
  );

  test('the signal of a multi-lock aborts when its release finds a member lost', async () => {
    const client = await openClient();
    const [a, b] = [client.getLock(freshName()), client.getLock(freshName())];
    const hold = await holdElsewhere(client.getMultiLock(a, b));
    const { signal } = hold;
    await admin().del(a.name);
    expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
    expect(signal.reason).toBeInstanceOf(LockLostError);
  });

  test('holds that are released at the same time emit `released` once each', async () => {
    const client = await openClient();
    const lock = client.getLock(freshName());
    const told = listen(client);
    const outer = await holdElsewhere(lock);
    const inner = await outer.run(() => lock.acquire());
    await Promise.all([inner.release(), outer.release()]);
    expect([count(told, 'acquired'), count(told, 'released')]).toEqual([2, 2]);
  });

  test.each([
    ['a nested hold', PARTIAL],
    ['the last hold', RELEASE],
  ])('an unanswered release of %s emits `released` when it has taken effect', async (_, sha) => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, commandTimeout: 400 });
    const lock = client.getLock(freshName());
    const told = listen(client);
    const outer = await holdElsewhere(lock);
    const inner = sha === PARTIAL ? await outer.run(() => lock.acquire()) : undefined;
    const lost = proxy.swallow({ sha, times: Infinity });
    expect(await outcome((inner ?? outer).release())).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
    expect(count(told, 'released')).toBe(0);
    lost.lift();
    if (inner !== undefined) await outer.release();
    await until(() => count(told, 'released') === count(told, 'acquired'), 'all events are reported');
    expect(count(told, 'leaseLost')).toBe(0);
  });

  test('close({ releaseHolds: true }) emits `released` for each hold', async () => {
    const client = await openClient();
    const lock = client.getLock(freshName());
    const told = listen(client);
    const outer = await holdElsewhere(lock);
    await outer.run(() => lock.acquire());
    await client.close({ releaseHolds: true });
    expect([count(told, 'acquired'), count(told, 'released'), count(told, 'leaseLost')]).toEqual([2, 2, 0]);
  });

  test.each([1, 2, 3, 4])('in a random program of all kinds acquired = released + lost (%i)', async (luck) => {
    const random = new Random('events', `${process.env['HOLDFAST_SEED'] ?? 0} ${luck}`);
    const client = await openClient({ lockWatchdogTimeout: 600 });
    const told = listen(client);
    const acquired = new Map<string, number>();
    client.events.on('acquired', ({ owner }) => acquired.set(owner, (acquired.get(owner) ?? 0) + 1));
    const names = [freshName(), freshName()];
    const kinds: Record<string, (name: string) => Lock> = {
      plain: (name) => client.getLock(name),
      fair: (name) => client.getFairLock(`${name} fair`),
      fenced: (name) => client.getFencedLock(`${name} fenced`),
      read: (name) => client.getReadWriteLock(`${name} rw`).readLock(),
      write: (name) => client.getReadWriteLock(`${name} rw`).writeLock(),
      group: (name) => client.getMultiLock(`${name} group`, ['a', 'b']),
      multi: (name) => client.getMultiLock(client.getLock(`${name} m1`), client.getLock(`${name} m2`)),
    };
    let got = 0;
    const flow = async (): Promise<void> => {
      for (let step = 0; step < 12; step += 1) {
        const lock = kinds[random.pick(Object.keys(kinds))]!(random.pick(names));
        const { signal, abort } = abortable();
        if (random.fraction() < 0.3) setTimeout(abort, random.below(8));
        const leaseTime = random.fraction() < 0.2 ? 20 + random.below(40) : undefined;
        const options = { waitTime: random.pick([0, 20, 200]), leaseTime, signal };
        const section = async (depth: number): Promise<void> => {
          const hold = await lock.acquire(options).catch(() => undefined);
          if (hold === undefined) return;
          got += 1;
          await hold.run(() => inside(hold, depth));
        };
        const inside = async (hold: Hold, depth: number): Promise<void> => {
          if (random.fraction() < 0.3) await pause(random.below(30));
          const nested = depth < 2 && random.fraction() < 0.5 ? section(depth + 1) : undefined;
          if (random.fraction() < 0.6) await nested;
          const key = lock.name.split(', ')[0]!;
          if (random.fraction() < 0.08) await admin().del(key);
          if (random.fraction() < 0.08) await lock.forceUnlock().catch(() => undefined);
          await hold.release().catch(() => undefined);
          await nested;
        };
        await inFlow(() => section(0));
      }
    };
    await Promise.all(Array.from({ length: 6 }, flow));
    await until(() => client.holds().length === 0, 'nothing is held');
    const counts = (): number[] => [count(told, 'acquired'), count(told, 'released') + count(told, 'leaseLost')];
    await until(() => counts()[0] === counts()[1], `the end of every hold is reported: ${counts().join(' of ')}`);
    await pause(PARKED_MS);
    expect(counts()[1]).toBe(counts()[0]);
    for (const [owner, holds] of acquired) {
      const ends = told.filter((each) => each.endsWith(` ${owner.split(':')[1]}`) && !each.startsWith('acquired'));
      expect([owner, ends.length]).toEqual([owner, holds]);
    }
    expect(got).toBeGreaterThan(20);
    expect(count(told, 'acquired')).toBeGreaterThanOrEqual(got);
  });
});

/** A controller in two parts. */
function abortable(): { signal: AbortSignal; abort: () => void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}

test('a nested call that is aborted in the same turn as the release of its parent fails', async () => {
  const client = await openClient();
  const lock = client.getLock(freshName());
  /** Inside `hold`, and the caller is not. */
  const nest = (hold: Hold, signal?: AbortSignal): Promise<Hold> =>
    inFlow(async () => hold.run(async () => lock.acquire({ signal })));
  const outer = await holdElsewhere(lock);
  const parent = await nest(outer);
  const inside = await nest(parent);
  const { signal, abort } = abortable();
  // It waits for the place inside the parent. After the release it waits for the place inside the outer hold.
  const waiting = outcome(nest(parent, signal));
  const beside = nest(outer);
  await pause();
  void parent.release();
  abort();
  const late = pause(1_000).then(() => 'it still waits');
  const first = await Promise.race([waiting, late]);
  await inside.release();
  await (await beside).release();
  await outer.release();
  expect(first).toBe('ERR_LOCK_ABORTED');
});
