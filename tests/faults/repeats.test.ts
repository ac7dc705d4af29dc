import { afterEach, expect, test } from '@jest/globals';
import * as scripts from '../../src/redis/scripts/lock.js';
import { elapsed } from '../support/time/elapsed.js';
import { closeClients, holdElsewhere, openClient, openProxy, outcome, pause } from '../support/clients/lock-clients.js';
import { freshName } from '../support/redis.js';

const RELEASE = scripts.release.script!.sha;
const RENEW = scripts.renew.script!.sha;
const SLACK_MS = 250;

afterEach(() => closeClients());

test('R4: a repeated release whose reply comes after the end of the lease reports that the hold was lost', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, commandTimeout: 2_000 });
  const hold = await holdElsewhere(client.getLock(freshName()), 400);
  const leftMs = hold.validFor();
  const cut = proxy.cutAfter({ sha: RELEASE });
  const released = outcome(hold.release());
  await cut.applied;
  const late = proxy.holdReply({ sha: RELEASE });
  await late.applied;
  await pause(leftMs);
  late.lift();
  expect(await released).toBe('ERR_LOCK_LOST');
});

test('R12: a failed renewal is repeated after one second and not at the next tick', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, lockWatchdogTimeout: 9_000 });
  const hold = await holdElsewhere(client.getLock(freshName()));
  const refused = proxy.answer({ sha: RENEW }, '-ERR not now\r\n');
  await refused.applied;
  const failed = performance.now();
  const repeated = proxy.observe({ sha: RENEW });
  await repeated.executed;
  expect(elapsed(failed)).toBeLessThan(1_000 + 2 * SLACK_MS);
  await hold.release();
});
