import { afterEach, expect, test } from '@jest/globals';
import * as scripts from '../../src/redis/scripts/lock.js';
import { closeClients, inFlow, openClient, openProxy } from '../support/clients/lock-clients.js';
import { startWorker } from '../support/processes/child.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { startServer } from '../support/servers/servers.js';
import { until } from '../support/time/until.js';

/* Holds with `maxHoldTime`, or with a renewed lease of their own, while processes and servers fail. */

const RENEW = scripts.renew.script!.sha;

afterEach(() => closeClients());

test('R16: the lock of a killed process is free within its own renewed lease', async () => {
  const worker = await startWorker();
  try {
    await worker.createClient({ url: testRedisUrl() });
    const name = freshName();
    await worker.flow('holder').acquire(name, { leaseTime: 1_000, renew: true, maxHoldTime: 60_000 });
    await worker.kill9();
    expect(await admin().pttl(name)).toBeLessThanOrEqual(1_000);
    await until(async () => (await admin().exists(name)) === 0, 'the lock is free');
  } finally {
    await worker.kill9();
  }
});

test('R1: a hold whose last renewal lost its reply ends by maxHoldTime, and its key is released', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, lockWatchdogTimeout: 900 });
  const lock = client.getLock(freshName());
  const hold = await inFlow(async () => lock.acquire({ maxHoldTime: 1_300 }));
  const cut = proxy.cutAfter({ where: ({ args }) => args[0] === RENEW && Number(args[5]) < 900 });
  await cut.executed;
  await until(() => hold.signal.aborted, 'the hold is lost');
  expect(hold.signal.reason).toMatchObject({ code: 'ERR_LOCK_LOST' });
  await until(async () => (await admin().exists(lock.name)) === 0, 'the key is gone');
});

test('R11: with a stopped server the hold is lost at its deadline, and the key is free when the server goes on', async () => {
  const server = await startServer();
  const client = await openClient({ url: server.url, lockWatchdogTimeout: 900, commandTimeout: 300 });
  try {
    const lock = client.getLock('limited');
    const hold = await inFlow(async () => lock.acquire({ maxHoldTime: 5_000 }));
    await server.pause();
    await until(() => hold.signal.aborted, 'the hold is lost');
    // The server did not confirm the hold until the limit.
    expect(hold.signal.reason).toMatchObject({ reason: 'expired' });
    server.resume();
    await until(async () => Number(await server.command('EXISTS', 'limited')) === 0, 'the key is gone');
  } finally {
    server.resume();
    await client.close();
    await server.stop();
  }
});
