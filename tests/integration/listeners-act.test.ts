import { tracingChannel } from 'node:diagnostics_channel';
import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { LockEvents } from '../../src/events.js';
import type { HandOffOptions } from '../../src/options.js';
import { release } from '../../src/redis/scripts/lock.js';
import {
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
  outcome,
} from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';

/*
 * Listeners and subscribers may call any method of the client. Such a call finds no change half done: each acquisition has
 * one outcome, and no lock stays without a holder.
 */

afterEach(() => closeClients());

type Call = (client: LockClient, name: string, signal: AbortSignal) => Promise<unknown>;

const GRANTS: Record<string, [type: keyof LockEvents, call: Call]> = {
  'a lock': ['acquired', (client, name, signal) => client.getLock(name).acquire({ signal })],
  'a fair lock': ['acquired', (client, name, signal) => client.getFairLock(name).acquire({ signal })],
  'a read lock': ['acquired', (client, name, signal) => client.getReadWriteLock(name).readLock().acquire({ signal })],
  'permits with ids': [
    'permitsAcquired',
    (client, name, signal) => client.getPermitExpirableSemaphore(name, { permits: 1 }).acquirePermit({ signal }),
  ],
};

/** Counts the outcomes of acquisitions. */
function outcomesOf(client: LockClient): string[] {
  const outcomes: string[] = [];
  for (const type of ['acquired', 'permitsAcquired', 'notAcquired'] as const)
    client.events.on(type, () => outcomes.push(type));
  return outcomes;
}

const waits = (client: LockClient, count: number): Promise<void> =>
  until(() => client.stats().waits === count, 'the calls wait');

describe('a listener that aborts the signal of a call', () => {
  test.each(Object.keys(GRANTS))('comes too late once the call has got %s', async (kind) => {
    const [type, call] = GRANTS[kind]!;
    const client = await openClient();
    const controller = new AbortController();
    client.events.on(type, () => controller.abort());
    const outcomes = outcomesOf(client);
    const name = freshName();
    const granted = (await inFlow(() => call(client, name, controller.signal))) as { release(): Promise<void> };
    expect(outcomes).toEqual([type]);
    expect(client.stats().waiting).toBe(0);
    await granted.release();
    expect(client.holds()).toEqual([]);
    await admin().del(name); // a semaphore stays
  });

  test('comes too late in a subscriber of holdfast:acquire', async () => {
    const client = await openClient();
    const controller = new AbortController();
    const acquires = tracingChannel('holdfast:acquire');
    const subscribers = { asyncStart: () => controller.abort() };
    acquires.subscribe(subscribers as never);
    const hold = await inFlow(() => client.getLock(freshName()).acquire({ signal: controller.signal }));
    acquires.unsubscribe(subscribers as never);
    expect(controller.signal.aborted).toBe(true);
    await hold.release();
  });

  test.each<[string, HandOffOptions | undefined]>([
    ['by a request', undefined],
    ['without a request', { local: 5_000, maxTime: 60_000 }],
  ])('comes too late for the successor of a released hold, which follows %s', async (_how, handOff) => {
    const client = await openClient({ handOff });
    const lock = client.getLock(freshName());
    const first = await holdElsewhere(lock);
    const controller = new AbortController();
    const next = inFlow(() => lock.acquire({ signal: controller.signal }));
    await waits(client, 1);
    const outcomes = outcomesOf(client);
    client.events.once('released', () => controller.abort());
    await first.release();
    await (await next).release();
    expect(outcomes).toEqual(['acquired']);
    expect(client.stats().waiting).toBe(0);
    expect(await admin().exists(lock.name)).toBe(0);
  });

  test('gives a call that Redis refuses one outcome', async () => {
    const client = await openClient();
    const name = freshName();
    await admin().set(name, 'no lock');
    const controller = new AbortController();
    client.events.on('waiting', () => controller.abort());
    const outcomes = outcomesOf(client);
    const code = await outcome(
      inFlow(() => client.getLock(name).acquire({ waitTime: 5_000, signal: controller.signal })),
    );
    expect(code).toBe('ERR_LOCK_REFUSED');
    expect(outcomes).toEqual(['notAcquired']);
    expect(client.stats().waiting).toBe(0);
    await admin().del(name);
  });
});

describe('a listener of `released` that closes the client with its holds', () => {
  test.each<[string, HandOffOptions | undefined]>([
    ['by a request', undefined],
    ['without a request', { local: 5_000, maxTime: 60_000 }],
  ])('frees the lock also if the next call follows %s, and the release has to be repeated', async (_how, handOff) => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, handOff });
    const lock = client.getLock(freshName());
    const first = await holdElsewhere(lock);
    const next = outcome(inFlow(() => lock.withLock(({ signal }) => signal.throwIfAborted())));
    await waits(client, 1);
    let closed: Promise<void> | undefined;
    proxy.cutBefore({ sha: release.script!.sha });
    client.events.once('released', () => void (closed = client.close({ releaseHolds: true })));
    await first.release();
    expect(await next).toBe('ERR_LOCK_CLIENT_CLOSED');
    await closed;
    expect(await admin().exists(lock.name)).toBe(0);
  });
});
