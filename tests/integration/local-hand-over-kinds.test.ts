import { afterEach, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Lock } from '../../src/locks/lock.js';
import { answered, closeClients, inFlow, openClient } from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { inLine, LOCAL_MS, times } from './local-hand-over-stage.js';

/* Kinds whose sections ask Redis each time, also with `handOff.local` and `handOff.keep`. */

const LEASE_MS = 10_000;
const HAND_OFF = { local: LOCAL_MS, keep: LOCAL_MS, maxTime: 60_000 };

afterEach(() => closeClients());

test.each<[string, (client: LockClient, name: string) => Lock]>([
  ['a fair lock', (client, name) => client.getFairLock(name)],
  ['a non-reentrant fair lock', (client, name) => client.getNonReentrantFairLock(name)],
  ['a fenced lock', (client, name) => client.getFencedLock(name)],
  ['a spin lock', (client, name) => client.getSpinLock(name)],
  ['a group multi-lock', (client, name) => client.getMultiLock(name, ['a', 'b'])],
])('of %s: each section has an owner of its own, Redis knows it, and nothing is kept', async (_, make) => {
  const client = await openClient({ handOff: HAND_OFF });
  const name = freshName();
  const lock = make(client, name);
  const owners: string[] = [];
  const section = (): Promise<void> =>
    lock.withLock({ leaseTime: LEASE_MS }, async ({ owner }) => {
      owners.push(owner);
      expect(JSON.stringify(await admin().hgetall(name))).toContain(owner);
      expect(await admin().pttl(name)).toBeLessThanOrEqual(LEASE_MS);
    });
  const first = await inFlow(() => lock.acquire({ leaseTime: LEASE_MS }));
  const sections = await inLine(client, times(4, section));
  await answered(client);
  await first.release();
  await Promise.all(sections);
  expect(new Set([first.owner, ...owners]).size).toBe(5);
  expect(await admin().exists(name)).toBe(0);
});
