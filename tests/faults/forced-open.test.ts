import { afterEach, expect, test } from '@jest/globals';
import * as scripts from '../../src/redis/scripts/lock.js';
import { closeClients, holdElsewhere, inFlow, openClient, openProxy, outcome } from '../support/lock-clients.js';
import { admin, expectNothingLeft, freshName } from '../support/redis.js';
import { until } from '../support/until.js';

afterEach(async () => {
  await closeClients();
  await expectNothingLeft();
});

test('R2: a hold whose own client may have forced it open is lost, and given back once Redis answers', async () => {
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
  await until(async () => (await admin().exists(name)) === 0, 'it is given back', 6_000);
  expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
});
