import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Lock } from '../../src/locks/lock.js';
import * as groupScripts from '../../src/several/group/scripts.js';
import type { SeenCommand } from '../support/proxy/fault.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { closeClients, holdElsewhere, inFlow, openClient, openProxy } from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';

/** The kinds of lock with their own scripts. The scripts of the plain lock are in lost-replies.slow.test.ts. */
const KINDS: Record<string, (client: LockClient, name: string) => Lock> = {
  'fenced lock': (client, name) => client.getFencedLock(name),
  'fenced lock with tokens of the clock': (client, name) => client.getFencedLock(name, { tokens: 'clock' }),
  'spin lock': (client, name) => client.getSpinLock(name),
  'read lock': (client, name) => client.getReadWriteLock(name).readLock(),
  'write lock': (client, name) => client.getReadWriteLock(name).writeLock(),
  'group lock': (client, name) => client.getMultiLock(name, ['a', 'b']),
};

/** The fates of the first attempts. The next one passes. */
type Fates = readonly ('cutBefore' | 'cutAfter')[];
const FATES: Record<string, Fates> = {
  'never arrived': ['cutBefore'],
  'executed, reply lost': ['cutAfter'],
  'executed, reply lost, twice': ['cutAfter', 'cutAfter'],
  'never arrived, then executed and reply lost': ['cutBefore', 'cutAfter'],
};

afterEach(() => closeClients());

/** Looking at a group changes nothing; a force unlock of one begins so. */
const LOOK = groupScripts.state.script!.sha;

/** Runs a call through these faults, and fails unless it was sent once for each of them and once more. */
async function through<T>(fates: Fates, proxy: FaultProxy, name: string, call: () => Promise<T>): Promise<T> {
  const changes = ({ name: command, args }: SeenCommand): boolean =>
    command === 'EVALSHA' && args.includes(name) && args[0] !== LOOK;
  const sent = (): number => proxy.log.filter(changes).length;
  const before = sent();
  const faults = fates.map((fate) => proxy[fate]({ where: changes }));
  const result = await call();
  expect(faults.map(({ count }) => count)).toEqual(fates.map(() => 1));
  expect(sent() - before).toBe(fates.length + 1);
  return result;
}

describe.each(Object.entries(FATES))('R1: %s', (_fate, fates) => {
  test.each(Object.entries(KINDS))(
    'R1: %s: acquire, nested acquire, partial release, release and force unlock take effect once',
    async (_kind, make) => {
      const { proxy, url } = await openProxy();
      const [client, other] = [await openClient({ url }), await openClient()];
      const name = freshName();
      const lock = make(client, name);
      await lock.withLock(() => lock.withLock(() => undefined)); // the server has the scripts
      const struck = <T>(call: () => Promise<T>): Promise<T> => through(fates, proxy, name, call);
      const owners = async (): Promise<[string, number][]> =>
        (await other.inspect(name)).owners.map(({ owner, holdCount }) => [owner, holdCount]);

      const hold = await struck(() => inFlow(async () => lock.acquire()));
      expect(await owners()).toEqual([[hold.owner, 1]]);
      const nested = await struck(() => hold.run(async () => lock.acquire()));
      expect(await owners()).toEqual([[hold.owner, 2]]);
      await struck(() => nested.release());
      expect(await owners()).toEqual([[hold.owner, 1]]);
      expect(hold.validFor()).toBeGreaterThan(0);
      await struck(() => hold.release());
      expect(await admin().exists(name)).toBe(0);

      await holdElsewhere(make(other, name));
      expect(await struck(() => lock.forceUnlock())).toBe(true);
      expect(await admin().exists(name)).toBe(0);
    },
  );

  test('R1: fenced lock: a hand-over inside the client draws one new token and grants one waiter', async () => {
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url }), await openClient()];
    const lock = client.getFencedLock(freshName());
    let waiting = 0;
    client.events.on('waiting', () => (waiting += 1));
    await lock.withLock(() => undefined);
    const first = await inFlow(async () => lock.acquire());
    const next = inFlow(async () => lock.acquire());
    await until(() => waiting === 1, 'it waits');
    await until(
      () => proxy.log.filter(({ args }) => args.includes(lock.name)).at(-1)?.answeredAt !== undefined,
      'parked',
    );
    await through(fates, proxy, lock.name, () => first.release());
    const second = await next;
    expect(await other.getFencedLock(lock.name).getToken()).toBe(second.token);
    expect((await other.inspect(lock.name)).owners).toMatchObject([{ owner: second.owner, holdCount: 1 }]);
    await second.release();
  });
});

test('R1: a repeated acquire returns the token whose reply was lost, and draws no other', async () => {
  const { proxy, url } = await openProxy();
  const lock = (await openClient({ url })).getFencedLock(freshName());
  const before = await lock.withLock(({ token }) => token);
  const hold = await through(['cutAfter'], proxy, lock.name, () => lock.acquire());
  expect(hold.token).toBe(before + 1n);
  expect(await lock.getToken()).toBe(hold.token);
  await hold.release();
});
