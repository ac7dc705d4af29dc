import { describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import { inFlow, outcome } from '../support/clients/lock-clients.js';
import { until } from '../support/time/until.js';
import { holders, open, servers } from './red-lock-stage.js';

const allHaveIt = (members: readonly LockClient[]): Promise<void> =>
  until(() => members.every((client) => client.holds().length === 1), 'each member is held');

const freeAgain = (name: string): Promise<void> =>
  until(async () => (await holders(name)).every((held) => held === 0), 'the rest is released');

/** The part at that server has been lost, and the client knows. */
async function lose(client: LockClient, at: number, name: string): Promise<void> {
  const lost = new Promise<void>((told) => client.events.on('leaseLost', () => told()));
  await servers[at]!.command('DEL', name);
  await lost;
}

describe('R28: a RedLock that has lost its part at one server', () => {
  test.each([0, 1, 2])('R28: nests with the other servers, with or without a wait time (server %i)', async (at) => {
    const { lock, clients: opened, name } = await open({ lockWatchdogTimeout: 1_500 });
    await lock.withLock(async (hold) => {
      await allHaveIt(opened);
      await lose(opened[at]!, at, name);
      expect(hold.signal.aborted).toBe(false);
      for (const waitTime of [0, 1_000, Infinity]) {
        const nested = await lock.acquire({ waitTime });
        expect(nested.validFor()).toBeGreaterThan(0);
        await nested.release();
      }
      // A branch beside another waits for its turn.
      const branches = [1, 2].map(async () => lock.withLock(() => undefined));
      expect(await outcome(Promise.all(branches))).toBe('ok');
    });
    await freeAgain(name);
  });

  test('R28: reports the same loss after the client of another server is closed', async () => {
    const { lock, clients: opened, name } = await open({ lockWatchdogTimeout: 1_500 });
    const body = inFlow(async () =>
      lock.withLock(async (hold) => {
        await allHaveIt(opened);
        const aborted = new Promise<void>((told) => hold.signal.addEventListener('abort', () => told()));
        await opened[0]!.close();
        expect(hold.signal.aborted).toBe(false);
        await servers[1]!.command('DEL', name);
        await aborted;
        expect(hold.signal.reason).toMatchObject({ code: 'ERR_LOCK_LOST', reason: 'gone' });
        return 'done';
      }),
    );
    expect(await body.catch((error: unknown) => error)).toMatchObject({ code: 'ERR_LOCK_LOST', result: 'done' });
    await servers[0]!.command('DEL', name);
    await freeAgain(name);
  });

  test('R28: unnoticed reports the loss at the release after the client of another server is closed', async () => {
    const { lock, clients: opened, name } = await open();
    const hold = await inFlow(async () => lock.acquire({ leaseTime: 20_000 }));
    await allHaveIt(opened);
    await opened[0]!.close();
    await servers[1]!.command('DEL', name);
    expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
    await servers[0]!.command('DEL', name);
    await freeAgain(name);
  });
});

test('R28: an extend() with too few replies reports that and no loss', async () => {
  const { lock, clients: opened, name } = await open({ commandTimeout: 600 });
  const hold = await inFlow(async () => lock.acquire({ leaseTime: 20_000 }));
  await allHaveIt(opened);
  await servers[0]!.command('DEL', name);
  await servers[1]!.pause();
  const said = await outcome(hold.extend(60_000));
  const { aborted } = hold.signal;
  servers[1]!.resume();
  expect({ said, aborted }).toEqual({ said: 'ERR_LOCK_REDIS_UNAVAILABLE', aborted: false });
  await hold.release();
  await freeAgain(name);
});

test('R10: after a blocked event loop a nested call names the lost RedLock', async () => {
  const { lock, clients: opened, name } = await open();
  const hold = await inFlow(async () => lock.acquire({ leaseTime: 1_500 }));
  await allHaveIt(opened);
  const blockedUntil = performance.now() + 1_600;
  while (performance.now() < blockedUntil);
  const error: unknown = await hold.run(() => lock.tryLock().catch((reason: unknown) => reason));
  expect(error).toMatchObject({ code: 'ERR_LOCK_LOST', lockName: lock.name });
  expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
  await freeAgain(name);
});
