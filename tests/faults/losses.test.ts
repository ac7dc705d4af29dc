import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import { startWorker } from '../support/processes/child.js';
import { elapsed } from '../support/time/elapsed.js';
import { holdElsewhere, inFlow, outcome, pause, ready } from '../support/clients/lock-clients.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { until } from '../support/time/until.js';

const SLACK_MS = 250;

let server: RedisServer;
let client: LockClient;
let told: string[];

beforeEach(async () => {
  server = await startServer();
  client = createClient({ url: server.url, lockWatchdogTimeout: 3_000, commandTimeout: 600 });
  await ready(client);
  told = [];
  client.events.on('leaseLost', ({ lockName, reason }) => told.push(`${lockName} ${reason}`));
});

afterEach(async () => {
  await client.close();
  await server.stop();
});

/** The time of the loss report of a hold. */
function lossOf(hold: Hold): { at: number; count: number } {
  const loss = { at: Infinity, count: 0 };
  hold.signal.addEventListener('abort', () => {
    loss.at = performance.now();
    loss.count += 1;
  });
  return loss;
}

test('R11: with a server that is killed 0.5 s into a lease of 3 s the losses are reported before the lease ends', async () => {
  const ends: number[] = [];
  const due: number[] = [];
  const take = (name: string, leaseTime?: number): Promise<Hold> => {
    const hold = ends.push(performance.now() + 3_000) - 1;
    // When this process is let run at the time of the report.
    setTimeout(() => (due[hold] = performance.now()), 3_000 - 30);
    return holdElsewhere(client.getLock(name), leaseTime);
  };
  const holds = [await take('watched'), await take('leased', 3_000)];
  const losses = holds.map(lossOf);
  await pause(500);
  await server.kill9();
  await until(() => losses.every(({ at }) => at < Infinity), 'both losses are reported');
  // A hundredth of the lease before its end. On a busy machine, as soon after that as a timer that was due then.
  for (const [hold, { at }] of losses.entries()) expect(at).toBeLessThan(Math.max(ends[hold]!, (due[hold] ?? 0) + 30));
  for (const hold of holds) expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
  expect(losses.map(({ count }) => count)).toEqual([1, 1]);
  expect(told.sort()).toEqual(['leased expired', 'watched expired']);
});

test('R11: after an empty restart of the server the next renewal, or an unlock before it, reports the loss', async () => {
  const watched = await holdElsewhere(client.getLock('watched'));
  const leased = await holdElsewhere(client.getLock('leased'), 60_000);
  const loss = lossOf(watched);
  await server.restart();
  const back = performance.now();
  await until(() => loss.at < Infinity, 'the loss is reported');
  expect(elapsed(back, loss.at)).toBeLessThan(1_000 + 600 + SLACK_MS);
  expect(await outcome(leased.release())).toBe('ERR_LOCK_LOST');
  expect(leased.signal.aborted).toBe(true);
  await outcome(watched.release());
  expect(told.sort()).toEqual(['leased gone', 'watched gone']);
  await inFlow(() => client.getLock('watched').withLock(() => undefined));
});

test('R13: a process that was stopped for two leases reports its losses before any call of the holders succeeds', async () => {
  const worker = await startWorker();
  try {
    await worker.createClient({ url: server.url, lockWatchdogTimeout: 600 });
    const flow = worker.flow('holder');
    const holds = [await flow.lock('watched'), await flow.lock('leased', 600)];
    await worker.pause();
    await pause(1_200);
    // Another owner has been inside for long.
    await inFlow(() => client.getLock('watched').withLock({ waitTime: 0 }, () => undefined));
    worker.resume();
    const resumed = performance.now();
    for (const { hold, lockName } of holds) {
      await expect(flow.call(lockName, 'tryLock')).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
      await worker.nextEvent(({ type, detail }) => type === 'signal' && detail.hold === hold);
      expect(elapsed(resumed)).toBeLessThan(2 * SLACK_MS);
      await expect(flow.unlock(lockName)).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
    }
    const losses = worker.events.filter(({ type }) => type === 'leaseLost');
    expect(losses.map(({ detail }) => detail.lockName).sort()).toEqual(['leased', 'watched']);
  } finally {
    await worker.close();
  }
});
