import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { LockEvents } from '../../src/events.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { closeClients, inFlow, openClient, openProxy, outcome, pause } from '../support/clients/lock-clients.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';

/* A release in the background whose request fails: its caller has gone on, so an event reports the failure. */

const DEADLINE_MS = 600;
const REPLY_MS = 50;
const SHORT_LEASE_MS = 100;
const BACKGROUND = { release: 'background' } as const;
const RELEASE = scripts.release.script!.sha;
const ACQUIRE = scripts.acquire.script!.sha;

afterEach(() => closeClients());

interface Bench {
  readonly proxy: FaultProxy;
  readonly client: LockClient;
  readonly name: string;
  readonly failed: LockEvents['releaseFailed'][];
}

async function bench(): Promise<Bench> {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, commandTimeout: DEADLINE_MS });
  const failed: LockEvents['releaseFailed'][] = [];
  client.events.on('releaseFailed', (event) => failed.push(event));
  // From now on Redis has the scripts.
  await inFlow(() => client.getLock(freshName()).withLock(() => undefined));
  return { proxy, client, name: freshName(), failed };
}

const keyGone = (name: string): Promise<void> =>
  until(async () => (await admin().exists(name)) === 0, 'the key is gone');

describe('a release in the background', () => {
  test.each<[string, (proxy: FaultProxy) => { lift(): void; readonly count: number }, string]>([
    ['is not answered', (proxy) => proxy.swallow({ sha: RELEASE, times: Infinity }), 'ERR_LOCK_REDIS_UNAVAILABLE'],
    [
      'is cut off every time',
      (proxy) => proxy.cutBefore({ sha: RELEASE, times: Infinity }),
      'ERR_LOCK_REDIS_UNAVAILABLE',
    ],
    [
      'is refused',
      (proxy) => proxy.answer({ sha: RELEASE }, '-NOPERM this user has no permissions to run EVALSHA\r\n'),
      'ERR_LOCK_REFUSED',
    ],
  ])('that %s reports its failure as an event, and the lock is free in the end', async (_, strike, code) => {
    const { proxy, client, name, failed } = await bench();
    const lock = client.getLock(name);
    let fault: ReturnType<typeof strike> | undefined;
    const result = await lock.withLock(BACKGROUND, () => {
      fault = strike(proxy);
      return 'done';
    });
    expect(result).toBe('done');
    expect(failed).toEqual([]);
    await until(() => failed.length > 0, 'the failure is reported');
    expect(failed).toEqual([expect.objectContaining({ lockName: name, cause: expect.objectContaining({ code }) })]);
    expect(fault!.count).toBeGreaterThan(0);
    fault!.lift();
    await keyGone(name);
  });

  test('waits for its outcome while the connection is down, and does not reject', async () => {
    const { proxy, client, name, failed } = await bench();
    const refused = proxy.refuse('reset');
    const hold = await client.getLock(name).acquire(BACKGROUND);
    proxy.cut();
    await until(async () => (await outcome(client.ready())) !== 'ok', 'the client is disconnected');
    await hold.release();
    expect(failed).toHaveLength(1);
    refused.lift();
    await keyGone(name);
  });

  test('of a lost hold rejects with the loss, also while the release of another hold of its owner is on its way', async () => {
    const { proxy, client, name } = await bench();
    const lock = client.getLock(name);
    const outer = await inFlow(() => lock.acquire({ ...BACKGROUND, leaseTime: SHORT_LEASE_MS }));
    const inner = await outer.run(() => lock.acquire({ ...BACKGROUND, leaseTime: 60_000 }));
    await pause(SHORT_LEASE_MS);
    const { signal } = outer;
    expect(signal.aborted).toBe(false);
    const held = proxy.holdReply({ sha: RELEASE });
    const released = inner.release();
    await held.applied;
    expect(signal.aborted).toBe(true);
    expect(await outcome(outer.release())).toBe('ERR_LOCK_LOST');
    held.lift();
    await released;
    await keyGone(name);
  });

  test('whose script Redis has forgotten stays ahead of the next call of this client', async () => {
    const { proxy, client, name } = await bench();
    const lock = client.getLock(name);
    for (const next of [() => lock.tryAcquire(), () => lock.tryAcquire({ waitTime: 1_000 })]) {
      await lock.withLock(BACKGROUND, () => void proxy.answer({ sha: RELEASE }, '-NOSCRIPT No matching script\r\n'));
      const hold = await next();
      expect(hold).not.toBeNull();
      await hold?.release();
    }
    expect(proxy.stats.commands.get('EVAL')).toBeGreaterThan(0);
  });

  test('is followed by the next acquire without a wait for its reply, up to the limit of hand-overs', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, handOff: { maxSections: 3, maxTime: 60_000 } });
    const lock = client.getLock(freshName());
    await lock.withLock(() => undefined);
    proxy.delay(REPLY_MS, { direction: 'to-client', kind: 'command' });
    const before = proxy.log.length;
    const waitedForReply: boolean[] = [];
    for (let section = 0; section < 6; section += 1) await lock.withLock(BACKGROUND, () => undefined);
    await until(async () => !(await lock.isLocked()), 'the last release has run');
    const sent = proxy.log.slice(before).filter(({ args }) => args[0] === ACQUIRE || args[0] === RELEASE);
    sent.forEach(({ args, at }, i) => {
      const release = sent[i - 1];
      if (args[0] === ACQUIRE && release !== undefined) waitedForReply.push(at - release.at >= REPLY_MS);
    });
    expect(waitedForReply).toEqual([false, false, false, true, false]);
  });
});
