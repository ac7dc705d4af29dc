import { afterEach, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import type { Fault } from '../support/proxy/fault.js';
import {
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
  outcome,
  pause,
} from '../support/clients/lock-clients.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { admin, freshName } from '../support/redis.js';
import { PARKED_MS, QUIET_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

const ACQUIRE = scripts.acquire.script!.sha;
const SLACK_MS = 250;
const LEASE_MS = 20_000;

afterEach(() => closeClients());

interface Bench {
  readonly proxy: FaultProxy;
  readonly client: LockClient;
  readonly other: LockClient;
  readonly name: string;
  readonly holder: Hold;
}

async function bench(): Promise<Bench> {
  const { proxy, url } = await openProxy();
  const [client, other] = [await openClient({ url }), await openClient()];
  const name = freshName();
  return { proxy, client, other, name, holder: await holdElsewhere(other.getLock(name), LEASE_MS) };
}

/**
 * The first attempt of the next try lies in the network while its connection is gone; the second is answered "busy".
 */
async function firstAttemptLate(
  { proxy, name }: Bench,
  call: () => Promise<unknown>,
): Promise<[Promise<unknown>, Fault]> {
  const late = proxy.holdCommand({ command: 'EVALSHA', sha: ACQUIRE, contains: name });
  const ids = proxy.connections({ kind: 'command' }).map(({ id }) => id);
  const repeat = proxy.observe({ command: 'EVALSHA', sha: ACQUIRE, contains: name, nth: 2 });
  const called = outcome(inFlow(call));
  await late.applied;
  proxy.cut({ connection: ids, side: 'client' });
  await repeat.executed;
  return [called, late];
}

test('R2: a busy try fails only when its earlier attempt can no longer acquire the lock', async () => {
  const each = await bench();
  const lock = each.client.getLock(each.name);
  const [called, late] = await firstAttemptLate(each, () => lock.acquire({ waitTime: 0 }));
  await each.holder.release();
  let answered = false;
  void called.then(() => (answered = true));
  await pause(QUIET_MS);
  expect(answered).toBe(false);
  late.lift();
  expect(await called).toBe('ERR_LOCK_TIMEOUT');
  await until(async () => (await admin().exists(each.name)) === 0, 'the lock is free', SLACK_MS);
});

test.each(['abort', 'time out'])('R2: a waiter that leaves by %s also fails only then', async (how) => {
  const each = await bench();
  const lock = each.client.getLock(each.name);
  const controller = new AbortController();
  const waitTime = how === 'abort' ? undefined : 200;
  const [called, late] = await firstAttemptLate(each, () => lock.acquire({ signal: controller.signal, waitTime }));
  await pause(how === 'abort' ? 50 : 220);
  controller.abort();
  let answered = false;
  void called.then(() => (answered = true));
  await pause(QUIET_MS);
  expect(answered).toBe(false);
  await each.holder.release();
  late.lift();
  expect(await called).toBe(how === 'abort' ? 'ERR_LOCK_ABORTED' : 'ERR_LOCK_TIMEOUT');
  // The grant of the late attempt is released. Otherwise the lock would have no holder for 20 s.
  await until(async () => (await admin().exists(each.name)) === 0, 'the lock is free', SLACK_MS);
});

test('R2: a waiter whose earlier attempt acquires late gets the lock, and the hold without a caller is released', async () => {
  const each = await bench();
  const lock = each.client.getLock(each.name);
  let hold: Hold | undefined;
  const [called, late] = await firstAttemptLate(each, async () => {
    hold = await lock.acquire({ leaseTime: LEASE_MS });
  });
  await pause(PARKED_MS);
  // Freed unheard: the late attempt is the first to find it free.
  await admin().del(each.name);
  late.lift();
  expect(await called).toBe('ok');
  expect(await admin().hgetall(each.name)).toEqual({ [hold!.owner]: '1' });
  expect(hold!.signal.aborted).toBe(false);
  await hold!.release();
  await pause(1_000);
  expect(await admin().exists(each.name)).toBe(0);
  expect(await outcome(each.holder.release())).toBe('ERR_LOCK_LOST');
});

test('R17: a polling waiter tries again when the late grant of its earlier attempt is released, without a message', async () => {
  const each = await bench();
  const lock = each.client.getSpinLock(each.name, { backOff: { delay: LEASE_MS } });
  let hold: Hold | undefined;
  const [called, late] = await firstAttemptLate(each, async () => {
    hold = await lock.acquire({ leaseTime: LEASE_MS });
  });
  await admin().del(each.name);
  late.lift();
  let stray: string[] = [];
  await until(async () => (stray = await admin().hkeys(each.name)).length > 0, 'the late attempt has the lock');
  await until(() => hold !== undefined, 'the waiter is in', 2_000); // its next look but for that is in 20 s
  expect(await called).toBe('ok');
  expect(stray).not.toEqual([hold!.owner]);
  await hold!.release();
  expect(await outcome(each.holder.release())).toBe('ERR_LOCK_LOST');
});

test('R2: an unanswered try of one reader does not fail the pending tries of other readers', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, commandTimeout: 2_400 });
  const name = freshName();
  const lock = client.getReadWriteLock(name).readLock();
  // The next reader tries at once.
  const first = await inFlow(async () => lock.acquire());
  const lost = proxy.swallow({ command: ['EVALSHA', 'EVAL'], contains: name, times: Infinity });
  const failed = inFlow(() => outcome(lock.acquire()));
  // It has two attempts left when the other has failed.
  await until(() => lost.count >= 3, 'the last attempt of the first is pending');
  const late = inFlow(async () => lock.acquire());
  late.catch(() => undefined); // looked at below
  expect(await failed).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
  lost.lift();
  const hold = await late;
  expect(await admin().hexists(name, hold.owner)).toBe(1);
  await hold.release();
  await first.release();
});
