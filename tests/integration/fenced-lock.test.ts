import { afterEach, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import type { FencedLock } from '../../src/locks/fenced-lock.js';
import { startWorker } from '../support/processes/child.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { tokenKey } from '../../src/redis/keys.js';

const clients: LockClient[] = [];
const open = (): LockClient => {
  const client = createClient({ url: testRedisUrl() });
  clients.push(client);
  return client;
};
afterEach(() => Promise.all(clients.splice(0).map((client) => client.close())));

/** Takes one outermost hold in a separate flow and returns its token. */
const inTurn = (lock: FencedLock): Promise<bigint> => lock.withLock((hold) => hold.token);

test('R29: tokens strictly increase across expiry, force unlock and client restart', async () => {
  const name = freshName();
  const tokens: bigint[] = [];
  const first = open();
  const expired = await open().getFencedLock(name).acquire({ leaseTime: 60_000 });
  tokens.push(expired.token);
  await admin().pexpire(name, 0);
  tokens.push(await inTurn(open().getFencedLock(name)));
  const forced = await first.getFencedLock(name).tryAcquire();
  tokens.push(forced!.token);
  await open().getFencedLock(name).forceUnlock();
  await first.close();
  tokens.push(await inTurn(open().getFencedLock(name)));
  expect(tokens).toEqual([1n, 2n, 3n, 4n]);
  expect(await open().getFencedLock(name).getToken()).toBe(4n);
});

test('R29: after kill -9 of the holder the next token is larger, and late writes with the old token are refused', async () => {
  const name = freshName();
  const lockWatchdogTimeout = 1_500;
  const doomed = await startWorker();
  await doomed.createClient({ url: testRedisUrl(), lockWatchdogTimeout });
  const dead = BigInt(String(await doomed.flow('holder').call({ factory: 'getFencedLock', name }, 'lockAndGetToken')));
  /** A resource takes no smaller token than it has seen. */
  const write = (token: bigint, value: string): Promise<unknown> =>
    admin().eval(
      `if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'token') or '0') then return 0 end
       redis.call('HSET', KEYS[1], 'token', ARGV[1], 'value', ARGV[2])
       return 1`,
      1,
      `${name}:resource`,
      String(token),
      value,
    );
  expect(await write(dead, 'of the holder')).toBe(1);
  await doomed.kill9();
  expect(await admin().exists(name)).toBe(1); // the client still counts on its hold
  await open()
    .getFencedLock(name)
    .withLock(async ({ token }) => {
      expect(token).toBeGreaterThan(dead);
      expect(await write(token, 'of the next one')).toBe(1);
      expect(await write(dead, 'late')).toBe(0);
    });
  expect(await admin().hget(`${name}:resource`, 'value')).toBe('of the next one');
  await admin().del(`${name}:resource`);
  await doomed.close();
});

test('every hold has its own token: nested, after a hand-over, and after another client', async () => {
  const name = freshName();
  const lock = open().getFencedLock(name);
  const other = open().getFencedLock(name);
  const tokens: bigint[] = [];
  await lock.withLock(async (outer) => {
    tokens.push(outer.token);
    tokens.push(await lock.lockAndGetToken());
    expect(lock.currentHold()!.token).toBe(tokens[1]);
    await lock.unlock();
    expect(lock.currentHold()!.token).toBe(tokens[0]);
  });
  const contended = await Promise.all(Array.from({ length: 20 }, (_, i) => inTurn(i % 2 === 0 ? lock : other)));
  const all = [...tokens, ...contended];
  expect(new Set(all).size).toBe(22);
  expect([...all].sort((a, b) => Number(a - b))).toEqual(Array.from({ length: 22 }, (_, i) => BigInt(i + 1)));
  expect(await lock.getToken()).toBe(22n);
});

test('a call on a busy lock draws no token', async () => {
  const name = freshName();
  const lock = open().getFencedLock(name);
  const hold = await lock.acquire();
  expect(await open().getFencedLock(name).tryLockAndGetToken()).toBeNull();
  expect(await open().getFencedLock(name).tryLockAndGetToken(30, 1_000)).toBeNull();
  expect(await lock.getToken()).toBe(hold.token);
  await hold.release();
});

test('the lease of the call applies to the hold with the token', async () => {
  const name = freshName();
  const lock = open().getFencedLock(name);
  expect(await lock.lockAndGetToken(5_000)).toBe(1n);
  expect(await lock.remainTimeToLive()).toBeLessThanOrEqual(5_000);
  await lock.unlock();
});

test('R31: with tokens from the clock, no token repeats after the counter is lost', async () => {
  const name = freshName();
  const lock = open().getFencedLock(name, { tokens: 'clock' });
  const before = await inTurn(lock);
  await admin().del(tokenKey(name));
  expect(await inTurn(lock)).toBeGreaterThan(before);
});

test('before the first acquisition the token is 0', async () => {
  expect(await open().getFencedLock(freshName()).getToken()).toBe(0n);
});

test('a token source that does not exist is refused at once', () => {
  const wrong = { tokens: 'time' } as unknown as { tokens: 'clock' };
  expect(() => open().getFencedLock('name', wrong)).toThrow(/tokens must be 'counter' or 'clock'/);
});

test('a non-reentrant lock refuses its own flow at once and otherwise works like a plain lock', async () => {
  const name = freshName();
  const lock = open().getNonReentrantLock(name);
  await lock.withLock(async () => {
    await expect(lock.lock()).rejects.toMatchObject({ code: 'ERR_LOCK_NON_REENTRANT' });
    await expect(lock.tryLock(50)).rejects.toMatchObject({ code: 'ERR_LOCK_NON_REENTRANT' });
    expect(await open().getNonReentrantLock(name).tryLock()).toBe(false);
    expect(await lock.remainTimeToLive()).toBeGreaterThan(29_000);
  });
  expect(await lock.isLocked()).toBe(false);
});
