import { afterEach, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import { release as releasePermits } from '../../src/redis/scripts/permit-expirable-semaphore.js';
import * as scripts from '../../src/redis/scripts/semaphore.js';
import { closeClients, openClient, openProxy, outcome, pause, TestClock } from '../support/clients/lock-clients.js';
import { admin, freshName, leavesKeys } from '../support/redis.js';
import { PARKED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

afterEach(() => closeClients());
leavesKeys('semaphores and latches stay until they are deleted');

/** The first request of a file has to connect and to load its script on a busy machine within this time. */
const COMMAND_MS = 1_500;

test('R1: a request of unknown outcome keeps its lane, and the next request uses another one', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, commandTimeout: COMMAND_MS });
  const name = freshName();
  const semaphore = client.getSemaphore(name);
  await semaphore.trySetPermits(2);
  await semaphore.withPermits(() => undefined); // the server has the script
  const away = proxy.answer({ sha: scripts.cancel.script!.sha, times: Infinity }, '-LOADING later\r\n');
  const unanswered = proxy.cutAfter({ sha: scripts.acquire.script!.sha, times: Infinity });
  expect(await outcome(semaphore.tryAcquire())).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
  unanswered.lift();
  expect(await admin().get(name)).toBe('1');
  await until(async () => (await outcome(semaphore.tryAcquire())) === 'ok', 'another one takes the other permit');
  expect(await admin().get(name)).toBe('0');
  away.lift();
  await until(async () => (await admin().get(name)) === '1', 'the permits of the first request are released', 6_000);
  await semaphore.release();
});

test.each(['cutBefore', 'cutAfter'] as const)(
  'R1: %s: a rejected release continues until Redis replies, and counts once',
  async (fault) => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, commandTimeout: COMMAND_MS });
    const name = freshName();
    const semaphore = client.getSemaphore(name);
    await semaphore.trySetPermits(2);
    await semaphore.withPermits(() => undefined); // the server has the scripts
    await semaphore.acquire(2);
    const sha = scripts.release.script!.sha;
    const away = proxy[fault]({ sha, times: Infinity });
    expect(await outcome(semaphore.release(2))).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
    expect(await admin().get(name)).toBe(fault === 'cutAfter' ? '2' : '0');
    away.lift();
    const answered = proxy.observe({ sha });
    await answered.executed;
    expect(await admin().get(name)).toBe('2');
  },
);

test.each([
  ['before it does anything', 'answer', "-OOM command not allowed when used memory > 'maxmemory'.\r\n"],
  ['at its message', 'garble', '-NOPERM no permissions to access the channel script: 0, on @user_script:1.\r\n'],
] as const)(
  'R1: a release that Redis refuses %s continues until done, and permits handed to a waiter are released once',
  async (_, fault, reply) => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const name = freshName();
    const semaphore = client.getSemaphore(name);
    await semaphore.trySetPermits(3);
    await semaphore.withPermits(() => undefined); // the server has the scripts
    await semaphore.acquire(3);
    const waiting = semaphore.acquire(1);
    await until(async () => (await admin().pubsub('NUMSUB', `redisson_sc:{${name}}`))[1] === 1, 'it waits');
    const sha = scripts.release.script!.sha;
    const refused = proxy[fault]({ sha, times: Infinity }, reply);
    expect(await outcome(semaphore.release(3))).toBe('ERR_LOCK_REFUSED');
    await waiting;
    expect(await admin().get(name)).toBe(fault === 'answer' ? '0' : '2');
    refused.lift();
    const answered = proxy.observe({ sha });
    await answered.executed;
    expect(await admin().get(name)).toBe('2');
    await semaphore.release(1);
    expect(await admin().get(name)).toBe('3');
  },
);

class RunAhead extends TestClock {
  aheadMs = 0;

  override monotonic(): number {
    return super.monotonic() + this.aheadMs;
  }
}

const HOUR_MS = 3_600_000;

test.each([
  ['a semaphore', scripts.release, (client: LockClient, name: string) => client.getSemaphore(name)],
  ['permits with ids', releasePermits, (client: LockClient, name: string) => client.getPermitExpirableSemaphore(name)],
] as const)('a release of %s that is always refused continues for one hour', async (_, { script }, of) => {
  const { proxy, url } = await openProxy();
  const clock = new RunAhead();
  const semaphore = of(await openClient({ url, clock }), freshName());
  await semaphore.trySetPermits(1);
  const permits = await ('acquirePermits' in semaphore ? semaphore.acquirePermits() : semaphore.acquirePermit());
  const refused = proxy.answer({ sha: script!.sha, times: Infinity }, '-NOPERM no permissions\r\n');
  expect(await outcome(permits.release())).toBe('ERR_LOCK_REFUSED');
  await refused.appliedTimes(3);
  clock.aheadMs = HOUR_MS - 60_000;
  await refused.appliedTimes(4);
  await pause(PARKED_MS); // answered
  clock.aheadMs = HOUR_MS;
  await refused.appliedTimes(5);
  // The next would have come after 1.6 s.
  await pause(2_500);
  expect(refused.count).toBe(5);
});
