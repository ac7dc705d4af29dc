import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';

/*
 * What is compared, each as a user of it would write it and with its own defaults, but for two things that make the
 * work the same: every lease is as long, and nobody gives up waiting. Modules are loaded on demand, so that no peer
 * pays for what the import of another one does to the process.
 */

export interface Peer {
  /** So many sections of one flow, one after the other, with nothing inside. */
  flow(lock: string, sections: number): Promise<void>;
  /** One section with `work` inside. */
  section(lock: string, work: () => unknown): Promise<void>;
  /** Takes the lock; resolves with what gives it back. */
  acquire(lock: string): Promise<() => Promise<unknown>>;
  /** The same, for a lock that is renewed until it is given back. */
  keep(lock: string): Promise<() => Promise<unknown>>;
  close(): Promise<void>;
}

export const SUBJECTS = ['holdfast withLock', 'holdfast lock/unlock', 'redlock', 'redis-semaphore'] as const;
export type PeerName = (typeof SUBJECTS)[number] | 'holdfast fair lock' | 'raw scripts';
/** One for each library, where it makes no difference by which call the lock is taken. */
export const LIBRARIES = ['holdfast withLock', 'redlock', 'redis-semaphore'] as const satisfies PeerName[];

/** Commands that a peer sends although it, or another one, also runs them inside scripts. */
export const alsoSentBy = (name: PeerName): string[] => (name === 'redis-semaphore' ? ['set'] : []);

export interface PeerOptions {
  readonly url: string;
  readonly leaseMs?: number;
  readonly callSites?: boolean;
}

export function openPeer(name: PeerName, options: PeerOptions): Promise<Peer> {
  switch (name) {
    case 'holdfast withLock':
      return openHoldfast(options, true);
    case 'holdfast lock/unlock':
      return openHoldfast(options, false);
    case 'holdfast fair lock':
      return openHoldfast(options, true, 'getFairLock');
    case 'redlock':
      return openRedlock(options);
    case 'redis-semaphore':
      return openRedisSemaphore(options);
    case 'raw scripts':
      return openRawScripts(options);
  }
}

const LEASE_MS = 30_000;
const nothing = (): void => undefined;

async function openHoldfast(
  { url, leaseMs = LEASE_MS, callSites }: PeerOptions,
  scoped: boolean,
  factory: 'getLock' | 'getFairLock' = 'getLock',
): Promise<Peer> {
  const { createClient } = await import('holdfast');
  const client = createClient({ url, lockWatchdogTimeout: leaseMs, ...(callSites !== undefined && { callSites }) });
  await client.ready();
  const acquire = async (name: string): Promise<() => Promise<unknown>> => {
    const hold = await client[factory](name).acquire();
    return () => hold.release();
  };
  const common = { acquire, keep: acquire, close: () => client.close() };
  if (scoped) {
    return {
      ...common,
      async flow(name, sections) {
        const lock = client[factory](name);
        for (let i = 0; i < sections; i += 1) await lock.withLock(nothing);
      },
      async section(name, work) {
        await client[factory](name).withLock(work);
      },
    };
  }
  return {
    ...common,
    async flow(name, sections) {
      const lock = client[factory](name);
      for (let i = 0; i < sections; i += 1) {
        await lock.lock();
        await lock.unlock();
      }
    },
    async section(name, work) {
      const lock = client[factory](name);
      await lock.lock();
      try {
        await work();
      } finally {
        await lock.unlock();
      }
    },
  };
}

async function openRedlock({ url, leaseMs = LEASE_MS }: PeerOptions): Promise<Peer> {
  const { default: Redlock } = await import('redlock');
  const redis = await connect(url);
  const redlock = new Redlock([redis], { retryCount: -1 });
  return {
    ...fromAcquire(async (name) => {
      const lock = await redlock.acquire([name], leaseMs);
      return () => lock.release();
    }),
    keep(name) {
      return new Promise((resolve, reject) => {
        // Only `using` renews.
        const over = redlock.using([name], leaseMs, (signal) => {
          return new Promise<void>((leave) => {
            signal.addEventListener('abort', () => reject(new Error('redlock lost a lock')));
            resolve(() => (leave(), over));
          });
        });
        over.catch(reject);
      });
    },
    close: () => disconnect(redis),
  };
}

async function openRedisSemaphore({ url, leaseMs = LEASE_MS }: PeerOptions): Promise<Peer> {
  const { Mutex } = await import('redis-semaphore');
  const redis = await connect(url);
  const mutex = (name: string) => new Mutex(redis, name, { lockTimeout: leaseMs, acquireTimeout: Infinity });
  const acquire: Peer['acquire'] = async (name) => {
    const taken = mutex(name);
    await taken.acquire();
    return () => taken.release();
  };
  return {
    ...fromAcquire(acquire),
    async flow(name, sections) {
      const one = mutex(name);
      for (let i = 0; i < sections; i += 1) {
        await one.acquire();
        await one.release();
      }
    },
    keep: acquire,
    close: () => disconnect(redis),
  };
}

const RAW_ACQUIRE = `
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return nil
end
return redis.call('PTTL', KEYS[1])`;

const RAW_RELEASE = `
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return nil end
local holds = redis.call('HINCRBY', KEYS[1], ARGV[1], -1)
if holds > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', KEYS[2], '0')
return 1`;

/** The floor: the two scripts any reentrant lock needs, with names of the usual length and nothing around them. */
async function openRawScripts({ url, leaseMs = LEASE_MS }: PeerOptions): Promise<Peer> {
  const redis = await connect(url);
  const acquireSha = (await redis.script('LOAD', RAW_ACQUIRE)) as string;
  const releaseSha = (await redis.script('LOAD', RAW_RELEASE)) as string;
  const client = randomUUID();
  let owners = 0;
  const newOwner = (): string => `${client}:${++owners}`;
  const channelOf = (name: string): string => `redisson_lock__channel:{${name}}`;
  const acquire: Peer['acquire'] = async (name) => {
    const owner = newOwner();
    const ttl = await redis.evalsha(acquireSha, 1, name, owner, leaseMs);
    if (ttl !== null) throw new Error('the raw scripts cannot wait');
    return () => redis.evalsha(releaseSha, 2, name, channelOf(name), owner, leaseMs);
  };
  return {
    ...fromAcquire(acquire),
    async flow(name, sections) {
      const owner = newOwner();
      const channel = channelOf(name);
      for (let i = 0; i < sections; i += 1) {
        await redis.evalsha(acquireSha, 1, name, owner, leaseMs);
        await redis.evalsha(releaseSha, 2, name, channel, owner, leaseMs);
      }
    },
    keep: acquire,
    close: () => disconnect(redis),
  };
}

function fromAcquire(acquire: Peer['acquire']): Pick<Peer, 'acquire' | 'flow' | 'section'> {
  return {
    acquire,
    async flow(name, sections) {
      for (let i = 0; i < sections; i += 1) {
        const release = await acquire(name);
        await release();
      }
    },
    async section(name, work) {
      const release = await acquire(name);
      try {
        await work();
      } finally {
        await release();
      }
    },
  };
}

export async function connect(url: string): Promise<Redis> {
  const redis = new Redis(url, { lazyConnect: true });
  await redis.connect();
  return redis;
}

function disconnect(redis: Redis): Promise<void> {
  redis.disconnect();
  return Promise.resolve();
}
