import { afterEach, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import * as groupScripts from '../../src/several/group/scripts.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { elapsed } from '../support/time/elapsed.js';
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

afterEach(() => closeClients());

test('R2: a hold that its own client may have force-unlocked is lost, and released once Redis replies', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, commandTimeout: 600 });
  const name = freshName();
  const hold = await holdElsewhere(client.getLock(name), 20_000);
  const { signal } = hold;
  const cut = proxy.cutBefore({ sha: scripts.release.script!.sha, times: Infinity });
  expect(await outcome(inFlow(() => client.getLock(name).forceUnlock()))).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
  expect(signal.aborted).toBe(true);
  expect(await admin().exists(name)).toBe(1);
  cut.lift();
  await until(async () => (await admin().exists(name)) === 0, 'it is released', 6_000);
  expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
});

const kinds = {
  'a lock': (client: LockClient, name: string) => client.getLock(name),
  'values of a group': (client: LockClient, name: string) => client.getMultiLock(name, ['a']),
};
const asks = { 'a lock': { command: 'HKEYS' }, 'values of a group': { sha: groupScripts.state.script!.sha } };
const frees = { 'a lock': scripts.release.script!.sha, 'values of a group': groupScripts.release.script!.sha };

test.each(['a lock', 'values of a group'] as const)(
  'R3: forceUnlock() of %s takes one command deadline, including the read of the owners',
  async (kind) => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, commandTimeout: 2_100 });
    const name = freshName();
    const hold = await holdElsewhere(kinds[kind](await openClient(), name), 20_000);
    // That takes two of three attempts, and later requests are unanswered.
    const slow = proxy.swallow({ ...asks[kind], times: 2 });
    const hung = proxy.swallow({ sha: frees[kind], times: Infinity });
    const began = performance.now();
    const error: unknown = await kinds[kind](client, name)
      .forceUnlock()
      .catch((reason: unknown) => reason);
    expect(elapsed(began)).toBeLessThan(2_100 + 250);
    expect(error).toMatchObject({ code: 'ERR_LOCK_REDIS_UNAVAILABLE', outcome: 'unknown' });
    expect([slow.count, hung.count > 0]).toEqual([2, true]);
    hung.lift();
    await outcome(hold.release()); // the hold may be lost or not
  },
);

test.each(['a lock', 'values of a group'] as const)(
  'R3: forceUnlock() of %s has certainly freed nothing if the read of the owners is unanswered',
  async (kind) => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, commandTimeout: 600 });
    const name = freshName();
    const hold = await holdElsewhere(kinds[kind](await openClient(), name), 20_000);
    proxy.swallow({ ...asks[kind], times: Infinity });
    await expect(kinds[kind](client, name).forceUnlock()).rejects.toMatchObject({
      code: 'ERR_LOCK_REDIS_UNAVAILABLE',
      outcome: 'none',
    });
    expect(await outcome(hold.release())).toBe('ok');
  },
);
