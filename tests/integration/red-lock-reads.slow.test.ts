import { describe, expect, test } from '@jest/globals';
import type { Hold } from '../../src/holding/hold.js';
import type { NoQuorumError } from '../../src/errors.js';
import type { RedLock } from '../../src/several/red-lock.js';
import { inFlow } from '../support/clients/lock-clients.js';
import { until } from '../support/time/until.js';
import { freeEverywhere, open, servers, timed } from './red-lock-stage.js';

const COMMAND_TIMEOUT_MS = 9_000;
/** Time that a hanging server costs a waiting call: one attempt. */
const ATTEMPT_MS = COMMAND_TIMEOUT_MS / 3;
const SLACK_MS = 1_000;

const allHaveIt = async ({ clients }: Awaited<ReturnType<typeof open>>): Promise<void> =>
  until(() => clients.every((client) => client.holds().length === 1), 'each member is held');

/** The results of the reads. Checks that each took less than an attempt. */
async function answers(lock: RedLock, hold: Hold): Promise<Record<string, unknown>> {
  const reads: Record<string, () => Promise<unknown>> = {
    isLocked: () => lock.isLocked(),
    isHeldBy: () => lock.isHeldBy(hold.owner),
    'isHeldBy another owner': () => lock.isHeldBy('somebody:1'),
    isHeldByCurrentContext: () => hold.run(() => lock.isHeldByCurrentContext()),
    getHoldCount: () => hold.run(() => lock.getHoldCount()),
  };
  const told = Object.entries(reads).map(async ([name, read]) => {
    const { value, ms } = await timed(inFlow(read));
    expect({ name, inTime: ms < ATTEMPT_MS - SLACK_MS }).toEqual({ name, inTime: true });
    return [name, value];
  });
  return Object.fromEntries(await Promise.all(told)) as Record<string, unknown>;
}

describe.each([0, 1, 2])('R28: with server %i of three hanging', (at) => {
  test('R28: the other servers answer the reads of a RedLock', async () => {
    const red = await open({ commandTimeout: COMMAND_TIMEOUT_MS });
    const { lock } = red;
    const hold = await inFlow(async () => lock.acquire({ leaseTime: 20_000 }));
    await allHaveIt(red);
    await servers[at]!.pause();
    expect(await answers(lock, hold)).toEqual({
      isLocked: true,
      isHeldBy: true,
      'isHeldBy another owner': false,
      isHeldByCurrentContext: true,
      getHoldCount: 1,
    });
    await hold.release();
    const free = await timed(lock.isLocked());
    expect(free.value).toBe(false);
    expect(free.ms).toBeLessThan(ATTEMPT_MS - SLACK_MS);
    servers[at]!.resume();
    await freeEverywhere(red);
  });

  test('R28: a read that needs its answer settles without it after one unanswered attempt', async () => {
    const red = await open({ commandTimeout: COMMAND_TIMEOUT_MS });
    const { lock } = red;
    const hold = await inFlow(async () => lock.acquire({ leaseTime: 60_000 }));
    await allHaveIt(red);
    // The two others agree on nothing, so that the third may be the one in the middle.
    await servers[(at + 1) % 3]!.command('PEXPIRE', red.name, '15000');
    await servers[at]!.pause();
    const sentAt = performance.now();
    const first = await timed(lock.remainTimeToLive());
    // A lower bound counts all of the time, also that in which this process was held up.
    expect(performance.now() - sentAt).toBeGreaterThan(ATTEMPT_MS / 2);
    expect(first.ms).toBeLessThan(ATTEMPT_MS + SLACK_MS);
    // A server that has just missed an attempt is not waited for again.
    const next = await timed(lock.remainTimeToLive());
    expect(next.ms).toBeLessThan(ATTEMPT_MS - SLACK_MS);
    for (const { value } of [first, next]) {
      expect(value).toBeGreaterThan(15_000);
      expect(value).toBeLessThanOrEqual(60_000);
    }
    await hold.release();
    expect(await lock.remainTimeToLive()).toBe(-2);
    servers[at]!.resume();
    await freeEverywhere(red);
  });
});

test('R28: a read waits for one of three servers if its answer decides', async () => {
  const { lock, clients, name } = await open();
  const hold = await inFlow(async () => clients[0]!.getLock(name).acquire({ leaseTime: 20_000 }));
  const other = await inFlow(async () => clients[2]!.getLock(name).acquire({ leaseTime: 40_000 }));
  await servers[2]!.pause();
  const reads = [lock.isLocked(), lock.remainTimeToLive()] as const;
  await Promise.all([0, 1].map((at) => clients[at]!.getLock(name).isLocked()));
  servers[2]!.resume();
  const [locked, left] = await Promise.all(reads);
  expect(locked).toBe(true);
  expect(left).toBeGreaterThan(10_000);
  expect(left).toBeLessThanOrEqual(20_000);
  await Promise.all([hold.release(), other.release()]);
});

test.each([0, 1, 2])(
  'R28: with one holder of the majority down (%i), the lock is locked, and free after its release',
  async (at) => {
    const { lock, clients, name } = await open({ commandTimeout: 900 });
    const parts = [at, (at + 1) % 3];
    const holds = await Promise.all(parts.map((part) => inFlow(async () => clients[part]!.getLock(name).acquire())));
    await servers[at]!.pause();
    expect(await lock.isLocked()).toBe(true);
    await holds[1]!.release();
    expect(await lock.isLocked()).toBe(false);
    servers[at]!.resume();
    await holds[0]!.release();
  },
);

test('R28: two of three refuse and one hangs: NoQuorumError at once, with the result of each server', async () => {
  const { lock } = await open({ commandTimeout: COMMAND_TIMEOUT_MS });
  await lock.isLocked();
  const user = (rule: string): Promise<unknown> =>
    Promise.all([0, 2].map((at) => servers[at]!.command('ACL', 'SETUSER', 'default', rule)));
  await user('-exists');
  await servers[1]!.pause();
  const { value, ms } = await timed(lock.isLocked().catch((error: unknown) => error));
  servers[1]!.resume();
  await user('+@all');
  expect(ms).toBeLessThan(ATTEMPT_MS - SLACK_MS);
  expect(value).toMatchObject({ code: 'ERR_LOCK_NO_QUORUM' });
  expect((value as NoQuorumError).results).toMatchObject([
    { server: 0, outcome: 'failed', error: { code: 'ERR_LOCK_REFUSED' } },
    { server: 1, outcome: 'failed' },
    { server: 2, outcome: 'failed', error: { code: 'ERR_LOCK_REFUSED' } },
  ]);
});
