import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import { startWorker, type Worker } from '../support/processes/child.js';
import { elapsed } from '../support/time/elapsed.js';
import {
  closeClients,
  openClient,
  openProxy,
  outcome,
  pause,
  type ClientSettings,
} from '../support/clients/lock-clients.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { SharedCounter } from '../support/processes/shared-counter.js';
import { LONG_QUIET_MS, QUIET_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';
import { SLACK_MS, WAKE_MS } from './lock-kind.js';
import type { PermitKind, Permits, Taken } from './permit-kind.js';
import { expectAtMost, expectNoOverlap } from '../support/serious.js';

interface Stage {
  readonly name: string;
  readonly client: LockClient;
  readonly permits: Permits;
  readonly proxy: FaultProxy;
}

/** The contract of all permits, with or without ids. */
export function describePermitContract(label: string, kind: PermitKind): void {
  const made: string[] = [];
  const workers: Worker[] = [];
  const counters: SharedCounter[] = [];
  const servers: RedisServer[] = [];

  afterEach(async () => {
    await Promise.all(workers.splice(0).map((worker) => worker.close()));
    await Promise.all(counters.splice(0).map((counter) => counter.close()));
    await closeClients();
    await Promise.all(servers.splice(0).map((server) => server.stop()));
    // The semaphores themselves stay, by design, and their name is all that they leave.
    for (const name of made.splice(0)) await admin().del(name);
  });

  /** A client behind a proxy, with a new semaphore. */
  async function stage(
    free: number,
    { settings = {}, name = freshName('permits') }: { settings?: ClientSettings; name?: string } = {},
  ): Promise<Stage> {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, ...settings });
    const permits = kind.make(client, name);
    made.push(name);
    if (free >= 0) await permits.trySet(free);
    return { name, client, permits, proxy };
  }

  /** The same semaphore at another client. */
  const beside = async (name: string): Promise<Permits> => kind.make(await openClient(), name);

  /** Starts a call and returns when it waits. */
  async function waiting<T>({ client }: Pick<Stage, 'client'>, call: () => Promise<T>): Promise<{ done: Promise<T> }> {
    let waits = false;
    const note = (): void => void (waits = true);
    client.events.on('waiting', note);
    const done = call();
    done.catch(() => undefined);
    await until(() => waits, 'it waits');
    client.events.off('waiting', note);
    return { done };
  }

  async function listening(name: string): Promise<void> {
    await until(async () => ((await admin().pubsub('CHANNELS', `*${name}*`)) as string[]).length > 0, 'it listens');
  }

  describe(label, () => {
    test('no more flows than permits are inside, over three clients, and all flows finish', async () => {
      const { name } = await stage(3);
      const all = await Promise.all([beside(name), beside(name), beside(name)]);
      let inside = 0;
      let most = 0;
      let sections = 0;
      await Promise.all(
        Array.from({ length: 60 }, (_, at) =>
          all[at % 3]!.within(async () => {
            most = Math.max(most, (inside += 1));
            await pause(at % 4);
            inside -= 1;
            sections += 1;
          }),
        ),
      );
      expectAtMost(most, 3);
      expect({ most, sections }).toEqual({ most: 3, sections: 60 });
      expect(await all[0].free()).toBe(3);
    });

    test('R20: one permit works as a lock: one flow at a time over two clients, and no update is lost', async () => {
      const { name } = await stage(1);
      const counter = await SharedCounter.start();
      counters.push(counter);
      const shared = await counter.open();
      const all = await Promise.all([beside(name), beside(name)]);
      await Promise.all(
        Array.from({ length: 20 }, (_, at) =>
          all[at % 2]!.within(() => shared.section(name, `#${at}`, () => pause(at % 2))),
        ),
      );
      expectNoOverlap(counter.overlaps);
      expect({ value: counter.value(name), most: counter.mostHolders(name) }).toEqual({ value: 20, most: 1 });
      shared.close();
    });

    test('a release in another process wakes a waiter in this one', async () => {
      const scene = await stage(0);
      const { done } = await waiting(scene, () => scene.permits.take(1));
      const worker = await startWorker();
      workers.push(worker);
      await worker.createClient({ url: testRedisUrl() });
      await worker.flow('other').call(kind.spec(scene.name), 'addPermits', 1);
      const taken = await done;
      await scene.permits.give(taken);
    });

    test('enough free permits are taken at once; with too few, none is taken', async () => {
      const { permits } = await stage(3);
      const two = await permits.tryTake(2);
      expect(two).not.toBeNull();
      expect(await permits.tryTake(2)).toBeNull();
      expect(await permits.free()).toBe(1);
      await permits.give(two!);
      expect(await permits.free()).toBe(3);
    });

    test('an existing semaphore keeps its permits, and a missing one has none', async () => {
      const { permits } = await stage(-1);
      expect(await permits.free()).toBe(0);
      expect(await permits.tryTake(1)).toBeNull();
      expect(await permits.trySet(2)).toBe(true);
      expect(await permits.trySet(5)).toBe(false);
      expect(await permits.free()).toBe(2);
    });

    test('waiters of one client are served in order', async () => {
      const scene = await stage(0);
      const order: number[] = [];
      const all: Promise<void>[] = [];
      for (let at = 0; at < 5; at += 1) {
        const { done } = await waiting(scene, () => scene.permits.take(1));
        all.push(
          done.then(async (taken) => {
            order.push(at);
            await scene.permits.give(taken);
          }),
        );
      }
      await (await beside(scene.name)).add(1);
      await Promise.all(all);
      expect(order).toEqual([0, 1, 2, 3, 4]);
    });

    test('R21: several permits released at once grant several waiters', async () => {
      const scene = await stage(0);
      const all: Promise<Taken>[] = [];
      for (let at = 0; at < 3; at += 1) all.push((await waiting(scene, () => scene.permits.take(1))).done);
      await (await beside(scene.name)).add(3);
      const came = performance.now();
      const taken = await Promise.all(all);
      expect(elapsed(came)).toBeLessThan(WAKE_MS + SLACK_MS);
      expect(await scene.permits.free()).toBe(0);
      for (const each of taken) await scene.permits.give(each);
    });

    test('R21: several smaller releases grant a waiter for three permits (hazard 26)', async () => {
      const scene = await stage(3);
      const other = await beside(scene.name);
      const held = [await other.take(1), await other.take(1), await other.take(1)];
      const { done } = await waiting(scene, () => scene.permits.take(3));
      for (const taken of held) await other.give(taken);
      const came = performance.now();
      await scene.permits.give(await done);
      expect(elapsed(came)).toBeLessThan(WAKE_MS + SLACK_MS);
    });

    test('R22: a release costs a few commands with any number of waiters, and waiting costs none', async () => {
      const scene = await stage(1);
      const taken = await scene.permits.take(1);
      const abort = new AbortController();
      const all = Array.from({ length: 200 }, () => scene.permits.take(1, { signal: abort.signal }));
      const settled = Promise.allSettled(all);
      await listening(scene.name);
      // Its request follows those of the others.
      await waiting(scene, () => scene.permits.take(1, { signal: abort.signal }));
      const before = scene.proxy.log.length;
      await pause(LONG_QUIET_MS);
      expect(scene.proxy.log.length - before).toBeLessThanOrEqual(2);
      await scene.permits.give(taken);
      const first = await Promise.race(all);
      expect(scene.proxy.log.length - before).toBeLessThanOrEqual(8);
      abort.abort();
      await settled;
      await scene.permits.give(first);
    });

    test('a waiter that times out leaves nothing behind', async () => {
      const { permits } = await stage(0);
      const began = performance.now();
      expect(await permits.tryTake(1, 40)).toBeNull();
      await expect(permits.take(1, { waitTime: 40 })).rejects.toMatchObject({
        code: 'ERR_LOCK_TIMEOUT',
        waitTime: 40,
      });
      expect(performance.now() - began).toBeGreaterThanOrEqual(80);
      await permits.add(1);
      expect(await permits.free()).toBe(1);
    });

    test('R23: with an aborted signal nothing is sent, and an abort ends a wait at once and takes nothing', async () => {
      const scene = await stage(0);
      const gone = AbortSignal.abort(new Error('enough'));
      const before = scene.proxy.log.length;
      await expect(scene.permits.take(1, { signal: gone })).rejects.toMatchObject({ code: 'ERR_LOCK_ABORTED' });
      expect(scene.proxy.log.length).toBe(before);
      const abort = new AbortController();
      const { done } = await waiting(scene, () => scene.permits.take(1, { signal: abort.signal }));
      await listening(scene.name);
      const fired = performance.now();
      abort.abort(new Error('enough'));
      await expect(done).rejects.toMatchObject({ name: 'AbortError', cause: { message: 'enough' } });
      expect(elapsed(fired)).toBeLessThan(50 + SLACK_MS);
      await scene.permits.add(1);
      expect(await scene.permits.free()).toBe(1);
    });

    test('R23: an abort of a pending request, 100 times, loses no permit', async () => {
      const { permits } = await stage(1);
      for (let at = 0; at < 100; at += 1) {
        const abort = new AbortController();
        const call = permits.take(1, { signal: abort.signal });
        if (at % 2 === 0) await new Promise(setImmediate);
        abort.abort();
        const taken = await call.catch(() => undefined);
        if (taken !== undefined) await permits.give(taken);
      }
      await until(async () => (await permits.free()) === 1, 'the permit is back');
    });

    test.each(['cutBefore', 'cutAfter', 'swallow'] as const)('R1: %s: every request counts once', async (fault) => {
      const { name, permits, proxy } = await stage(5, { settings: { commandTimeout: 3_000 } });
      const strike = async <T>(call: () => Promise<T>): Promise<T> => {
        const struck = proxy[fault]({ command: 'EVALSHA', contains: kind.key(name) });
        const result = await call();
        expect(struck.count).toBe(1);
        return result;
      };
      await permits.give(await permits.take(1)); // the server knows the scripts
      const taken = await strike(() => permits.take(2));
      expect(await permits.free()).toBe(3);
      await strike(() => permits.give(taken));
      expect(await permits.free()).toBe(5);
    });

    test('R1: permits of an acquire of unknown outcome are released, and a release is repeated until it is done', async () => {
      const { name, permits, proxy } = await stage(5, { settings: { commandTimeout: 600 } });
      const kept = await permits.take(1);
      const silence = proxy.swallow({ contains: kind.key(name), times: Infinity });
      await expect(permits.tryTake(2)).rejects.toMatchObject({
        code: 'ERR_LOCK_REDIS_UNAVAILABLE',
        outcome: 'unknown',
      });
      await expect(permits.give(kept)).rejects.toMatchObject({ outcome: 'unknown' });
      silence.lift();
      await until(async () => (await admin().get(name)) === '5', 'two are recovered and one is released');
      await pause(LONG_QUIET_MS);
      expect(await permits.free()).toBe(5);
    });

    test('R2: a request that is delivered after the rejection of its call takes nothing', async () => {
      const { name, permits, proxy } = await stage(5, { settings: { commandTimeout: 600 } });
      await permits.give(await permits.take(1));
      const held = proxy.holdCommand({ command: 'EVALSHA', contains: kind.key(name), times: Infinity });
      await expect(permits.tryTake(2)).rejects.toMatchObject({ code: 'ERR_LOCK_REDIS_UNAVAILABLE' });
      expect(held.count).toBeGreaterThan(0);
      held.lift();
      await held.executed;
      await until(async () => (await permits.free()) === 5, 'nothing is taken');
      await pause(200);
      expect(await admin().get(name)).toBe('5');
    });

    test('R4: a copy of a repeated request takes nothing after the release of its permits', async () => {
      const { name, permits, proxy } = await stage(1);
      await permits.give(await permits.take(1));
      // The first attempt stays pending on a connection that is cut on the client side, and the second one is answered.
      const held = proxy.holdCommand({ command: 'EVALSHA', contains: kind.key(name) });
      const call = permits.take(1);
      await held.applied;
      proxy.cut({ kind: 'command', side: 'client' });
      await permits.give(await call);
      held.lift();
      await held.executed;
      expect(await permits.free()).toBe(1);
      await pause(QUIET_MS);
      expect(await admin().get(name)).toBe('1');
    });

    test('R3: with a server that never replies every call settles within its wait time and one command deadline', async () => {
      const { permits, proxy } = await stage(1, { settings: { commandTimeout: 600 } });
      const stall = proxy.stall();
      const began = performance.now();
      const settled = await Promise.all([
        outcome(permits.tryTake(1)),
        outcome(permits.tryTake(1, 300)),
        outcome(permits.free()),
        outcome(permits.add(1)),
      ]);
      expect(elapsed(began)).toBeLessThan(300 + 600 + SLACK_MS);
      expect(settled).toEqual(Array<string>(4).fill('ERR_LOCK_REDIS_UNAVAILABLE'));
      stall.lift();
    });

    test('R6: SCRIPT FLUSH at any moment is invisible', async () => {
      // Use a separate server: other test files count the requests on the shared one.
      const server = await startServer();
      servers.push(server);
      const client = await openClient({ url: server.url });
      const permits = kind.make(client, 'flushed');
      await permits.trySet(1);
      const taken = await permits.take(1);
      const { done } = await waiting({ client }, () => permits.take(1));
      await server.scriptFlush();
      await permits.give(taken);
      await permits.give(await done);
      expect(await permits.free()).toBe(1);
    });

    test.each([-1, 0.5, NaN, '1', null, 2 ** 53])('R7: %p permits are refused before any command', async (value) => {
      const { permits, proxy } = await stage(1);
      const before = proxy.log.length;
      for (const call of [() => permits.take(value as never), () => permits.tryTake(value as never)]) {
        await expect(call()).rejects.toMatchObject({ code: 'ERR_LOCK_INVALID_ARGUMENT' });
      }
      expect(proxy.log.length).toBe(before);
    });

    test('R7: invalid times and options are refused before any command', async () => {
      const { permits, proxy } = await stage(1);
      const before = proxy.log.length;
      for (const options of [5, { waitTime: 1.5 }, { waitTime: NaN }, { signal: {} }, { lease: 1 }]) {
        await expect(permits.take(1, options as never)).rejects.toMatchObject({ code: 'ERR_LOCK_INVALID_ARGUMENT' });
      }
      expect(proxy.log.length).toBe(before);
    });

    test('zero permits are granted without a command', async () => {
      const { permits, proxy } = await stage(0);
      const before = proxy.log.length;
      expect(await permits.tryTake(0)).not.toBeNull();
      expect(await permits.take(0)).toBeDefined();
      expect(proxy.log.length).toBe(before);
    });

    test('R8: a key prefix is part of the key and of the channel', async () => {
      const scene = await stage(-1, { settings: { keyPrefix: 'app:' } });
      made.push(`app:${scene.name}`);
      expect(await scene.permits.trySet(0)).toBe(true);
      const { done } = await waiting(scene, () => scene.permits.take(1));
      const came = performance.now();
      await (await beside(`app:${scene.name}`)).add(1);
      await scene.permits.give(await done);
      expect(elapsed(came)).toBeLessThan(WAKE_MS + SLACK_MS);
    });

    test('permits are released at the end of a function, also after an error', async () => {
      const { permits } = await stage(2);
      expect(await permits.within(() => 'done', { permits: 2 })).toBe('done');
      const error = new Error('of the body');
      await expect(permits.within(() => Promise.reject(error))).rejects.toBe(error);
      await expect(permits.within(() => undefined, { permits: 3, waitTime: 30 })).rejects.toMatchObject({
        code: 'ERR_LOCK_TIMEOUT',
      });
      expect(await permits.free()).toBe(2);
    });

    test('a failed release after the body is reported as an event and continues', async () => {
      const { name, client, permits, proxy } = await stage(1, { settings: { commandTimeout: 600 } });
      await permits.give(await permits.take(1));
      const failed: unknown[] = [];
      client.events.on('releaseFailed', (event) => failed.push(event));
      let silence: { lift(): void } | undefined;
      const result = await permits.within(() => {
        silence = proxy.swallow({ contains: kind.key(name), times: Infinity });
        return 'done';
      });
      expect(result).toBe('done');
      expect(failed).toMatchObject([{ lockName: name, cause: { code: 'ERR_LOCK_REDIS_UNAVAILABLE' } }]);
      silence!.lift();
      await until(async () => (await admin().get(name)) === '1', 'it is released');
    });

    test('close() rejects waiters and all later calls', async () => {
      const scene = await stage(0);
      const { done } = await waiting(scene, () => scene.permits.take(1));
      await scene.client.close();
      expect(await outcome(done)).toBe('ERR_LOCK_CLIENT_CLOSED');
      expect(await outcome(scene.permits.tryTake(1))).toBe('ERR_LOCK_CLIENT_CLOSED');
      expect(await outcome(scene.permits.free())).toBe('ERR_LOCK_CLIENT_CLOSED');
    });
  });
}
