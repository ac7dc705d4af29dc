import { afterEach, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Lock } from '../../src/locks/lock.js';
import { elapsed } from '../support/time/elapsed.js';
import { answered, closeClients, inFlow, openClient } from '../support/clients/lock-clients.js';
import { codeIn, page, tableUnder } from '../support/project/guide.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';

/* docs/choosing.md, "One name, one kind": which waiters of a name a release wakes. */

afterEach(() => closeClients());

interface Kind {
  readonly factory: string;
  readonly get: (client: LockClient, name: string) => Lock;
  /** It tries again without a message. */
  readonly looks?: true;
}

const KINDS: readonly Kind[] = [
  { factory: 'getLock', get: (client, name) => client.getLock(name) },
  { factory: 'getNonReentrantLock', get: (client, name) => client.getNonReentrantLock(name) },
  { factory: 'getFencedLock', get: (client, name) => client.getFencedLock(name) },
  { factory: 'getMultiLock(group, values)', get: (client, name) => client.getMultiLock(name, ['value']) },
  { factory: 'getFairLock', get: (client, name) => client.getFairLock(name), looks: true },
  { factory: 'getNonReentrantFairLock', get: (client, name) => client.getNonReentrantFairLock(name), looks: true },
  { factory: 'getReadWriteLock', get: (client, name) => client.getReadWriteLock(name).readLock() },
  { factory: 'getReadWriteLock', get: (client, name) => client.getReadWriteLock(name).writeLock() },
  { factory: 'getSpinLock', get: (client, name) => client.getSpinLock(name), looks: true },
];

const LEASE_MS = 4_000;
/** A fair lock's waiter looks once a second. */
const SOON_MS = 3_000;
/** The waiter counts the lease from the moment when it sent its try. A busy server runs the try later. */
const ON_THE_WAY_MS = 500;
const woken = new Map(
  tableUnder('A release of', page('docs/choosing.md')).flatMap(([of, wakes]) =>
    codeIn(of!).map((factory) => [factory, codeIn(wakes!)] as const),
  ),
);

interface Entered {
  readonly pair: string;
  /** ms from the request for the hold, which was released long before its lease ended. */
  readonly after: number;
  readonly when: 'soon' | 'when the lease had ended' | 'between';
  readonly expected: Entered['when'];
}

/** When the waiter entered; undefined: the hold does not keep it out. */
async function enters(
  clients: readonly [LockClient, LockClient],
  held: Kind,
  waits: Kind,
): Promise<Entered | undefined> {
  const [client, other] = clients;
  const name = freshName();
  const from = performance.now();
  const { hold } = await inFlow(async () => ({ hold: await held.get(client, name).acquire({ leaseTime: LEASE_MS }) }));
  const lock = waits.get(other, name);
  const granted = await inFlow(() => lock.tryAcquire());
  if (granted !== null) {
    await Promise.all([granted.release(), hold.release()]);
    return undefined;
  }
  const entered = inFlow(() => lock.withLock(() => performance.now()));
  const listening = async (): Promise<boolean> => (await admin().pubsub('CHANNELS', `*${name}*`)).length > 0;
  if (waits.factory !== 'getSpinLock') await until(listening, 'the waiter listens');
  await answered(other);
  await hold.release();
  const at = await entered;
  const isLate = at - from >= LEASE_MS - ON_THE_WAY_MS;
  const isSoon = waits.looks === true || woken.get(held.factory)!.includes(waits.factory);
  return {
    pair: `${waits.factory} behind ${held.factory}`,
    after: at - from,
    when: isLate ? 'when the lease had ended' : elapsed(from, at) < SOON_MS ? 'soon' : 'between',
    expected: isSoon ? 'soon' : 'when the lease had ended',
  };
}

test('a release wakes the waiters that the guide names; those of other kinds sleep until the lease ends', async () => {
  expect([...woken.keys()].sort()).toEqual([...new Set(KINDS.map(({ factory }) => factory))].sort());
  const clients = [await openClient(), await openClient()] as const;
  const pairs = KINDS.flatMap((held) => KINDS.map((waits) => enters(clients, held, waits)));
  const all = (await Promise.all(pairs)).filter((each) => each !== undefined);
  // Readers, and a group beside a lock of one owner, are not kept out.
  expect(all).toHaveLength(KINDS.length ** 2 - 1 - 6);
  expect(all.filter(({ when, expected }) => when !== expected)).toEqual([]);
  const tokens = await admin().keys('redisson_lock_token:*');
  await admin().del(...tokens);
});
