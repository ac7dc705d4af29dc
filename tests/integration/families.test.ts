import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import { LockContext } from '../../src/ownership/lock-context.js';
import type { Lock } from '../../src/locks/lock.js';
import { closeClients, inFlow, openClient, outcome } from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';

afterEach(() => closeClients());

type Family = 'hash of one owner' | 'read-write' | 'group';

interface Kind {
  readonly family: Family;
  readonly half?: 'read' | 'write';
  readonly nonReentrant?: true;
  get(client: LockClient, name: string, options?: { context: LockContext }): Lock;
}

const KINDS: Readonly<Record<string, Kind>> = {
  plain: { family: 'hash of one owner', get: (client, name, options) => client.getLock(name, options) },
  fenced: { family: 'hash of one owner', get: (client, name, options) => client.getFencedLock(name, options) },
  spin: { family: 'hash of one owner', get: (client, name, options) => client.getSpinLock(name, options) },
  fair: { family: 'hash of one owner', get: (client, name, options) => client.getFairLock(name, options) },
  'non-reentrant': {
    family: 'hash of one owner',
    nonReentrant: true,
    get: (client, name, options) => client.getNonReentrantLock(name, options),
  },
  'non-reentrant fair': {
    family: 'hash of one owner',
    nonReentrant: true,
    get: (client, name, options) => client.getNonReentrantFairLock(name, options),
  },
  read: {
    family: 'read-write',
    half: 'read',
    get: (client, name, options) => client.getReadWriteLock(name, options).readLock(),
  },
  write: {
    family: 'read-write',
    half: 'write',
    get: (client, name, options) => client.getReadWriteLock(name, options).writeLock(),
  },
  group: { family: 'group', get: (client, name, options) => client.getMultiLock(name, ['a', 'b'], options) },
  'multi-lock of a plain lock': {
    family: 'hash of one owner',
    get: (client, name, options) => client.getMultiLock(client.getLock(name), options ?? {}),
  },
  'multi-lock of a write lock': {
    family: 'read-write',
    half: 'write',
    get: (client, name, options) => client.getMultiLock(client.getReadWriteLock(name).writeLock(), options ?? {}),
  },
  'RedLock of a group': {
    family: 'group',
    get: (client, name, options) => client.getRedLock(client.getMultiLock(name, ['a', 'b']), options ?? {}),
  },
};

/** The result of a call of the inner kind inside a hold of the outer one. */
function inside(outer: Kind, inner: Kind): 'ok' | 'ERR_LOCK_UPGRADE' | 'ERR_LOCK_NON_REENTRANT' {
  if (outer.family !== inner.family) return 'ERR_LOCK_UPGRADE';
  if (inner.nonReentrant) return 'ERR_LOCK_NON_REENTRANT';
  return inner.half === 'write' && outer.half === 'read' ? 'ERR_LOCK_UPGRADE' : 'ok';
}

/** Whether a stranger gets the inner kind beside a hold of the outer one. */
function beside(outer: Kind, inner: Kind): boolean {
  if (outer.half === 'read' && inner.half === 'read') return true;
  // A group looks at its own values alone, as Redisson's does.
  return inner.family === 'group' && outer.family === 'hash of one owner';
}

/** Takes it, in each way there is, and releases it. */
const WAYS: Readonly<Record<string, (lock: Lock) => Promise<void>>> = {
  lock: async (lock) => (await lock.lock(), await lock.unlock()),
  tryLock: async (lock) => {
    expect(await lock.tryLock()).toBe(true);
    await lock.unlock();
  },
  'tryLock with a wait': async (lock) => {
    expect(await lock.tryLock(60_000, 10_000)).toBe(true);
    await lock.unlock();
  },
  acquire: async (lock) => (await lock.acquire()).release(),
  tryAcquire: async (lock) => (await lock.tryAcquire())!.release(),
  withLock: (lock) => lock.withLock(() => undefined),
};

const pairs = Object.keys(KINDS).flatMap((outer) => Object.keys(KINDS).map((inner) => [inner, outer] as const));

/** The section that a flow, or a context in no flow, has with a lock of this kind. */
async function within(
  owner: 'flow' | 'context',
  kind: Kind,
  client: LockClient,
  name: string,
  body: Body,
): Promise<void> {
  const options = owner === 'context' ? { context: new LockContext() } : undefined;
  const outer = kind.get(client, name, options);
  await inFlow(async () => {
    const hold = await outer.acquire();
    await body(outer, hold, options);
    expect(hold.signal.aborted).toBe(false);
    expect(await outer.isHeldByCurrentContext()).toBe(true);
    await hold.release();
  });
  expect(await admin().exists(name)).toBe(0);
}
type Body = (outer: Lock, hold: Hold, options: { context: LockContext } | undefined) => Promise<void>;

test.each(pairs)(
  'a context that acquires %s and %s of one name at the same time gets an error',
  async (second, first) => {
    const [client, other] = [await openClient(), await openClient()];
    const name = freshName();
    const context = new LockContext();
    // Only a lock of the same key keeps every kind out.
    const hold = await inFlow(() => other.getReadWriteLock(name).writeLock().acquire());
    const get = (kind: string): Lock => KINDS[kind]!.get(client, name, { context });
    const begun = inFlow(() => get(first).acquire());
    expect(await outcome(get(second).tryLock())).toBe('ERR_LOCK_CONCURRENT_CONTEXT');
    await hold.release();
    await (await begun).release();
  },
);

test('a context may acquire disjoint values of one group at the same time', async () => {
  const [client, other] = [await openClient(), await openClient()];
  const name = freshName();
  const context = new LockContext();
  const hold = await inFlow(() => other.getMultiLock(name, ['a', 'b', 'c']).acquire());
  const get = (...values: string[]): Lock => client.getMultiLock(name, values, { context });
  const begun = inFlow(() => get('a', 'b').acquire());
  expect(await outcome(get('b', 'c').acquire())).toBe('ERR_LOCK_CONCURRENT_CONTEXT');
  const beside = inFlow(() => get('c').acquire());
  await hold.release();
  await Promise.all([begun, beside].map(async (each) => (await each).release()));
});

describe.each(['flow', 'context'] as const)('inside a hold of a %s', (owner) => {
  test.each(pairs)(
    '%s in %s re-enters within one family, and is refused at once in another family',
    async (inner, outer) => {
      const client = await openClient();
      const name = freshName();
      await within(owner, KINDS[outer]!, client, name, async (_, hold, options) => {
        const before = await admin().hgetall(name);
        const handle = KINDS[inner]!.get(client, name, options);
        for (const [way, use] of Object.entries(WAYS)) {
          const told = await outcome(use(handle));
          expect([way, told]).toEqual([way, inside(KINDS[outer]!, KINDS[inner]!)]);
        }
        if (KINDS[outer]!.family !== KINDS[inner]!.family) expect(await admin().hgetall(name)).toEqual(before);
        expect(hold.validFor()).toBeGreaterThan(0);
      });
    },
  );

  test.each(pairs.filter(([inner, outer]) => KINDS[inner]!.family !== KINDS[outer]!.family))(
    'a handle of %s neither sees nor releases the hold of %s',
    async (inner, outer) => {
      const client = await openClient();
      const name = freshName();
      await within(owner, KINDS[outer]!, client, name, async (_, hold, options) => {
        const handle = KINDS[inner]!.get(client, name, options);
        expect(handle.currentHold()).toBeUndefined();
        expect(await handle.getHoldCount()).toBe(0);
        expect(await handle.isHeldByCurrentContext()).toBe(false);
        expect(await handle.isHeldBy(hold.owner)).toBe(false);
        if (options !== undefined) expect(await handle.isHeldBy(options.context)).toBe(false);
        await expect(handle.unlock()).rejects.toMatchObject({ code: 'ERR_LOCK_NOT_OWNER' });
        expect(await handle.forceUnlock().catch(() => false)).toBe(false);
      });
    },
  );
});

test.each(pairs)(
  'for a stranger %s is busy while %s is held, except for readers and values of a group',
  async (inner, outer) => {
    const [client, other] = [await openClient(), await openClient()];
    const name = freshName();
    await within('flow', KINDS[outer]!, client, name, async () => {
      for (const from of [client, other]) {
        const free = await inFlow(async () => {
          const taken = await KINDS[inner]!.get(from, name).tryAcquire();
          await taken?.release();
          return taken !== null;
        });
        expect(free).toBe(beside(KINDS[outer]!, KINDS[inner]!));
      }
    });
  },
);

test('two readers both fail to acquire the plain lock of the same name', async () => {
  const client = await openClient();
  const name = freshName();
  let both: () => void;
  const bothRead = new Promise<void>((resolve) => (both = resolve));
  let readers = 0;
  const reader = (): Promise<unknown> =>
    inFlow(() =>
      client
        .getReadWriteLock(name)
        .readLock()
        .withLock(async () => {
          readers += 1;
          if (readers === 2) both();
          await bothRead;
          return outcome(client.getLock(name).withLock(() => undefined));
        }),
    );
  expect(await Promise.all([reader(), reader()])).toEqual(['ERR_LOCK_UPGRADE', 'ERR_LOCK_UPGRADE']);
});

test('inside a lost hold, another kind of lock of that name is refused with the loss', async () => {
  const client = await openClient();
  const name = freshName();
  const write = client.getReadWriteLock(name).writeLock();
  await inFlow(async () => {
    await write.lock();
    await write.forceUnlock();
    expect(await outcome(client.getLock(name).lock())).toBe('ERR_LOCK_LOST');
    expect(await outcome(write.unlock())).toBe('ERR_LOCK_LOST');
    await client.getLock(name).lock();
    await client.getLock(name).unlock();
  });
});

test('a multi-lock with a member of another kind than the hold around it acquires nothing', async () => {
  const client = await openClient();
  const [name, free] = [freshName(), freshName()];
  const write = client.getReadWriteLock(name).writeLock();
  await inFlow(async () => {
    await write.lock();
    const both = client.getMultiLock(client.getLock(free), client.getLock(name));
    expect(await outcome(both.lock())).toBe('ERR_LOCK_UPGRADE');
    expect(await outcome(both.tryLock(1_000))).toBe('ERR_LOCK_UPGRADE');
    expect(await admin().exists(free)).toBe(0);
    await write.unlock();
  });
});

test('the error names the held kind and says what to do', async () => {
  const client = await openClient();
  const name = freshName();
  await client
    .getReadWriteLock(name)
    .writeLock()
    .withLock(async () => {
      await expect(client.getLock(name).lock()).rejects.toThrow(/read-write lock.*release that hold first/);
      await expect(client.getLock(name).unlock()).rejects.toThrow(/held in this process as another kind of lock/);
    });
});
