import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { CloseOptions } from '../../src/client/closing.js';
import { ClientClosedError } from '../../src/errors.js';
import type { Lock } from '../../src/locks/lock.js';
import * as fair from '../../src/redis/scripts/fair-lock.js';
import { acquire, handOff, release } from '../../src/redis/scripts/lock.js';
import { lockContext, LockContext } from '../../src/ownership/lock-context.js';
import {
  answered,
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
  outcome,
  pause,
  TestClock,
} from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';

afterEach(() => closeClients());

/** Longer than any test lasts: a drain that ends by its time limit fails the test. */
const LONG_MS = 60_000;

/** Time for which a call waits. A hand-over to the call begins before. */
const WAIT_MS = 1_000;

/** A promise that a test settles. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

const isWaiting = (client: LockClient, waits: number): Promise<void> =>
  until(() => client.stats().waits === waits, 'a call waits');

/** A call of the client waits for a message. */
async function parked(client: LockClient, name: string): Promise<void> {
  await until(async () => (await admin().pubsub('CHANNELS', `*{${name}}*`)).length === 1, 'it is subscribed');
  await answered(client);
}

describe('close({ drain })', () => {
  test('waits for an open hold, whose section can acquire it again and acquire other locks', async () => {
    const clock = new TestClock();
    const client = await openClient({ clock });
    const other = await openClient();
    const [name, second] = [freshName(), freshName()];
    const elsewhere = await holdElsewhere(other.getLock(second));
    const { opened, open } = gate();
    const section = client.getLock(name).withLock(async ({ signal }) => {
      await opened;
      await client.getLock(name).withLock(() => undefined);
      await client.getFairLock(second).withLock(() => undefined);
      const both = client.getMultiLock(client.getLock(freshName()), client.getLock(freshName()));
      await both.withLock(() => undefined);
      await client.getRedLock(client.getLock(freshName())).withLock({ waitTime: 1_000 }, () => undefined);
      return signal.aborted;
    });
    await until(() => client.holds().length === 1, 'the section runs');
    const closed = client.close({ drain: LONG_MS });
    open();
    await isWaiting(client, 1);
    await elsewhere.release();
    expect(await section).toBe(false);
    expect(await closed).toEqual({ drained: true, holds: [] });
    expect(clock.timers).toBe(0);
  });

  test.each<[call: string, make: (client: LockClient, name: string) => Promise<unknown>]>([
    ['lock()', (client, name) => client.getLock(name).lock()],
    ['tryLock()', (client, name) => client.getFairLock(name).tryLock()],
    ['acquire() for a context', (client, name) => client.getLock(name).acquire({ context: new LockContext() })],
    ['lock() of a multi-lock', (client, name) => client.getMultiLock(client.getLock(name)).lock()],
    ['tryLock() of a RedLock', (client, name) => client.getRedLock(client.getLock(name)).tryLock(1_000)],
    ['acquirePermits()', (client, name) => client.getSemaphore(name).acquirePermits()],
    ['tryAcquirePermit()', (client, name) => client.getPermitExpirableSemaphore(name).tryAcquirePermit()],
    ['await() of a latch', (client, name) => client.getCountDownLatch(name).await()],
  ])('rejects a new %s outside of every hold at once, and reads go on', async (_call, make) => {
    const client = await openClient();
    const hold = await holdElsewhere(client.getLock(freshName()));
    const closed = client.close({ drain: LONG_MS });
    const failed: unknown[] = [];
    client.events.on('notAcquired', ({ cause }) => failed.push(cause));
    await expect(make(client, freshName())).rejects.toBeInstanceOf(ClientClosedError);
    for (const cause of failed) expect(cause).toBeInstanceOf(ClientClosedError);
    expect(await client.getLock(hold.lockName).isLocked()).toBe(true);
    expect(await client.inspect(hold.lockName)).toMatchObject({ kind: 'lock' });
    await hold.release();
    expect(await closed).toEqual({ drained: true, holds: [] });
  });

  test('begins no section of a call that waits for a release in the background', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const lock = client.getLock(freshName());
    const working = await holdElsewhere(client.getLock(freshName()));
    const hold = await inFlow(() => lock.acquire({ release: 'background' }));
    const held = proxy.holdReply({ sha: release.script!.sha });
    await hold.release();
    const tried = inFlow(() => lock.tryLock());
    await held.applied;
    const closed = client.close({ drain: LONG_MS });
    held.lift();
    expect(await outcome(tried)).toBe('ERR_LOCK_CLIENT_CLOSED');
    expect(client.holds()).toHaveLength(1);
    await working.release();
    expect(await closed).toEqual({ drained: true, holds: [] });
  });

  test.each<[string, (client: LockClient, name: string) => Promise<unknown>]>([
    ['tryLock()', (client, name) => client.getLock(name).tryLock()],
    ['tryAcquire() with a wait time', (client, name) => client.getLock(name).tryAcquire({ waitTime: LONG_MS })],
  ])('begins no section of a %s from outside whose request is pending', async (_call, call) => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const name = freshName();
    const held = proxy.holdReply({ sha: acquire.script!.sha });
    const tried = inFlow(() => call(client, name));
    await held.applied;
    const closed = client.close({ drain: LONG_MS });
    held.lift();
    expect(await outcome(tried)).toBe('ERR_LOCK_CLIENT_CLOSED');
    expect(await closed).toEqual({ drained: true, holds: [] });
    expect(await admin().exists(name)).toBe(0);
  });

  test.each<[kind: string, sha: string, make: (client: LockClient, name: string) => Lock, options: CloseOptions]>([
    ['a lock', handOff.script!.sha, (client, name) => client.getLock(name), { drain: LONG_MS }],
    ['a fair lock', fair.handOff.script!.sha, (client, name) => client.getFairLock(name), { drain: LONG_MS }],
    ['a lock', handOff.script!.sha, (client, name) => client.getLock(name), { releaseHolds: true }],
    ['a fair lock', fair.handOff.script!.sha, (client, name) => client.getFairLock(name), { releaseHolds: true }],
  ])(
    'begins no section of a call whose wait time passes during a hand-over of %s to it',
    async (_kind, sha, make, options) => {
      const { proxy, url } = await openProxy();
      const client = await openClient({ url, commandTimeout: 10 * WAIT_MS });
      const lock = make(client, freshName());
      const hold = await holdElsewhere(lock);
      const held = proxy.holdReply({ sha });
      let begun = false;
      const call = outcome(inFlow(() => lock.withLock({ waitTime: WAIT_MS }, () => void (begun = true))));
      await parked(client, lock.name);
      const released = hold.release();
      await held.executed;
      await pause(WAIT_MS);
      const closed = client.close(options);
      held.lift();
      await released;
      expect(await call).toBe('ERR_LOCK_CLIENT_CLOSED');
      await closed;
      expect(begun).toBe(false);
      expect(await admin().exists(lock.name)).toBe(0);
    },
  );

  test('begins no section of a call whose wait time passes while its next try is pending', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, commandTimeout: 10 * WAIT_MS });
    const lock = client.getLock(freshName());
    const elsewhere = await holdElsewhere((await openClient()).getLock(lock.name));
    let begun = false;
    const call = outcome(inFlow(() => lock.withLock({ waitTime: WAIT_MS }, () => void (begun = true))));
    await parked(client, lock.name);
    const held = proxy.holdReply({ sha: acquire.script!.sha });
    await elsewhere.release();
    await held.executed;
    expect(await admin().exists(lock.name)).toBe(1);
    await pause(WAIT_MS);
    const closed = client.close({ drain: LONG_MS });
    held.lift();
    expect(await call).toBe('ERR_LOCK_CLIENT_CLOSED');
    expect(await closed).toEqual({ drained: true, holds: [] });
    expect(begun).toBe(false);
    expect(await admin().exists(lock.name)).toBe(0);
  });

  test('rejects the calls that wait outside of every hold, and keeps those that wait inside one', async () => {
    const client = await openClient();
    const other = await openClient();
    const busy = freshName();
    const elsewhere = await holdElsewhere(other.getLock(busy));
    const queue = freshName();
    const head = await holdElsewhere(other.getFairLock(queue));
    const inside = inFlow(() =>
      client.getLock(freshName()).withLock(() => client.getLock(busy).withLock(() => 'done')),
    );
    await isWaiting(client, 1);
    const context = new LockContext();
    const outer = await client.getLock(freshName()).acquire({ context });
    const inContext = inFlow(() => client.getLock(busy).acquire({ context }));
    await isWaiting(client, 2);
    const outside = [
      outcome(client.getLock(busy).lock()),
      outcome(client.getFairLock(queue).lock()),
      outcome(client.getLock(busy).acquire({ context: new LockContext() })),
      outcome(client.getMultiLock(client.getLock(freshName()), client.getLock(busy)).lock()),
      outcome(client.getRedLock(client.getLock(busy)).tryLock(LONG_MS)),
    ];
    await isWaiting(client, 7);
    const closed = client.close({ drain: LONG_MS });
    expect(await Promise.all(outside)).toEqual(Array(5).fill('ERR_LOCK_CLIENT_CLOSED'));
    expect(client.holds()).toHaveLength(2);
    await head.release();
    await elsewhere.release();
    expect(await inside).toBe('done');
    await (await inContext).release();
    await outer.release();
    expect(await closed).toEqual({ drained: true, holds: [] });
    expect(await other.getFairLock(queue).tryLock()).toBe(true);
    await other.getFairLock(queue).unlock();
  });

  test.each(['withPermits', 'withPermit'] as const)(
    'waits for a body of %s and the release, and the body can acquire locks and permits',
    async (kind) => {
      const client = await openClient();
      const [name, locked] = [freshName(), freshName()];
      const semaphore = client.getSemaphore(name);
      const licenses = client.getPermitExpirableSemaphore(name);
      await (kind === 'withPermits' ? semaphore : licenses).trySetPermits(2);
      const { opened, open } = gate();
      const body = async (): Promise<string> => {
        await opened;
        await (kind === 'withPermits' ? semaphore.withPermits(() => undefined) : licenses.withPermit(() => undefined));
        return client.getLock(locked).withLock(() => 'done');
      };
      const running = kind === 'withPermits' ? semaphore.withPermits(body) : licenses.withPermit(body);
      await until(
        () =>
          client.stats().acquisitions[kind === 'withPermits' ? 'semaphore' : 'permit-expirable-semaphore']?.granted ===
          1,
        'it runs',
      );
      const closed = client.close({ drain: LONG_MS });
      await expect(lockContext.run(() => client.getLock(locked).tryLock())).rejects.toBeInstanceOf(ClientClosedError);
      open();
      expect(await running).toBe('done');
      expect(await closed).toEqual({ drained: true, holds: [] });
      expect(Number(await admin().get(name))).toBe(2);
      await admin().del(name);
    },
  );

  test('closes at the end of its time, lists what is open, and can release it', async () => {
    const client = await openClient();
    const hold = await holdElsewhere(client.getLock(freshName()));
    const began = performance.now();
    const { drained, holds } = await client.close({ drain: 50, releaseHolds: true });
    expect(performance.now() - began).toBeGreaterThanOrEqual(49);
    expect(drained).toBe(false);
    expect(holds).toMatchObject([{ lockName: hold.lockName, owner: hold.owner, holdCount: 1 }]);
    expect(hold.signal.aborted).toBe(true);
    expect(await admin().exists(hold.lockName)).toBe(0);
  });

  test('does not wait for a hold that was lost, or released with `after`', async () => {
    const client = await openClient();
    const lost = await holdElsewhere(client.getLock(freshName()));
    await client.getLock(lost.lockName).forceUnlock();
    const left = await holdElsewhere(client.getLock(freshName()));
    await left.release({ after: LONG_MS });
    expect(await client.close({ drain: LONG_MS })).toEqual({ drained: true, holds: [] });
    expect(await admin().del(left.lockName)).toBe(1);
  });

  test('every call of close() returns the promise of the first', async () => {
    const client = await openClient();
    const hold = await holdElsewhere(client.getLock(freshName()));
    const closed = client.close({ drain: LONG_MS });
    expect(client.close()).toBe(closed);
    await hold.release();
    await closed;
  });

  test.each([-1, 1.5, Infinity, '5', null])('drain: %p is refused, and the client stays open', async (drain) => {
    const client = await openClient();
    expect(await outcome(client.close({ drain: drain as number }))).toBe('ERR_LOCK_INVALID_ARGUMENT');
    expect(await client.getLock(freshName()).isLocked()).toBe(false);
  });
});
