/*
 * The Web Locks standard (https://w3c.github.io/web-locks) on read-write locks. The manager keeps the order of the
 * requests of its own client: of each name, at most one of them waits at Redis.
 */
import { LockContext, type Hold, type LockClient, type ReadWriteLock } from '../../index.js';
import { checkClient } from '../shared/route-checks.js';
import {
  checkRequest,
  type CheckedRequest,
  type LockGrantedCallback,
  type LockInfo,
  type LockManagerSnapshot,
  type LockRequestOptions,
} from './lock-request.js';

const PREFIX = 'web-locks:';

/** A request that is not granted yet. */
class Pending {
  /** Whether Redis has said that the lock is busy. */
  waits = false;
  /** Resolves when the request waits, is granted or has failed. */
  readonly tried: Promise<void>;
  /** Resolves when the request is granted or has failed. */
  readonly left: Promise<void>;
  /** Ends the wait at Redis: the request is aborted, or a request with `steal` comes first. */
  wait = new AbortController();
  endTry!: () => void;
  leave!: () => void;

  constructor(readonly request: CheckedRequest) {
    this.tried = new Promise((resolve) => (this.endTry = resolve));
    this.left = new Promise((resolve) => (this.leave = resolve));
  }
}

const managers = new WeakMap<LockClient, LockManager>();

/**
 * Returns the lock manager of a client. It has the interface of `navigator.locks`, and its locks exclude each other
 * across all processes that use the same Redis. Each call with the same client returns the same manager.
 *
 * The lock `name` is the read-write lock `web-locks:name` of Redis: `exclusive` is its write lock, `shared` its read lock.
 *
 * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: `client` is no client of `createClient()`.
 * @example
 * const locks = createLockManager(client);
 * const total = await locks.request('cart', { mode: 'shared' }, async () => sumOf(await readCart()));
 */
export function createLockManager(client: LockClient): LockManager {
  let manager = managers.get(checkClient(client));
  if (manager === undefined) managers.set(client, (manager = new LockManager(client)));
  return manager;
}

/** Requests locks as `navigator.locks` does. {@link createLockManager} returns it. No lock is reentrant. */
export class LockManager {
  readonly #client: LockClient;
  /** The requests of each name that are not granted yet, in their order. */
  readonly #queues = new Map<string, Pending[]>();

  /** @internal */
  constructor(client: LockClient) {
    this.#client = client;
  }

  /**
   * Waits for the lock, calls `callback` with it, and releases it when the result of the callback has settled.
   *
   * @param name - any text that does not begin with `-`.
   * @param callback - receives the lock, or `null` if `ifAvailable` is set and the lock is not free.
   * @returns the result of the callback, when the lock is released. An error of the callback reaches the caller unchanged.
   * @throws {TypeError} An argument has the wrong type.
   * @throws {DOMException} `NotSupportedError`: the name is reserved, or two options exclude each other. `AbortError`:
   *   the lock was stolen, or the hold was lost (`cause` is the `LockLostError`).
   * @throws the reason of `signal`, if it aborts before the lock is granted.
   * @throws the errors of `Lock.acquire` if Redis is unavailable or the client is closed.
   * @example
   * await locks.request('nightly', { ifAvailable: true }, async (lock) => {
   *   if (lock !== null) await report();
   * });
   */
  request<T>(name: string, callback: LockGrantedCallback<T>): Promise<Awaited<T>>;
  request<T>(name: string, options: LockRequestOptions, callback: LockGrantedCallback<T>): Promise<Awaited<T>>;
  async request<T>(...args: unknown[]): Promise<Awaited<T>> {
    const request = checkRequest(args);
    const hold = await this.#granted(request);
    const { name, mode, callback } = request;
    const run = async (lock: Parameters<typeof callback>[0]): Promise<Awaited<T>> =>
      (await callback(lock)) as Awaited<T>;
    if (hold === null) return run(null);
    const { signal } = hold;
    try {
      // A stolen request rejects at once, although its callback still runs.
      const lost = new Promise<never>((_, reject) => {
        const fail = (): void => reject(lossOf(name, signal.reason));
        if (signal.aborted) fail();
        else signal.addEventListener('abort', fail, { once: true });
      });
      return await Promise.race([run(Object.freeze({ name, mode })), lost]);
    } finally {
      // A release that Redis has not confirmed continues in the background.
      await hold.release().catch(() => undefined);
    }
  }

  /**
   * Lists the held locks of all processes, and the waiting requests of this client. The call reads page by page with
   * `SCAN`, as `client.list()` does.
   *
   * @throws the errors of `client.list()`.
   * @example
   * const { held, pending } = await locks.query();
   */
  async query(): Promise<LockManagerSnapshot> {
    const pending = [...this.#queues.values()].flat().map(({ request: { name, mode } }): LockInfo => {
      return { name, mode, clientId: this.#client.id };
    });
    const held: LockInfo[] = [];
    for await (const { name, owners } of this.#client.list({ match: `${PREFIX}*` })) {
      for (const { owner, mode } of owners) {
        const clientId = owner.slice(0, owner.lastIndexOf(':'));
        held.push({ name: name.slice(PREFIX.length), mode: mode === 'read' ? 'shared' : 'exclusive', clientId });
      }
    }
    return { held, pending };
  }

  async #granted(request: CheckedRequest): Promise<Hold | null> {
    const { name, steal, signal } = request;
    const both = this.#client.getReadWriteLock(PREFIX + name, { context: new LockContext() });
    const queue = this.#queues.get(name) ?? [];
    this.#queues.set(name, queue);
    const pending = new Pending(request);
    // Other requests with `steal` keep their order.
    const first = steal ? queue.findIndex((other) => !other.request.steal) : -1;
    queue.splice(first < 0 ? queue.length : first, 0, pending);
    // Else the waiter of this client would get the lock before the thief.
    if (steal) for (const other of queue) other.wait.abort();
    let onAbort!: () => void;
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => {
        pending.wait.abort();
        reject(signal?.reason as Error);
      };
    });
    aborted.catch(() => undefined);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      return await this.#inTurn(pending, queue, both, aborted);
    } finally {
      signal?.removeEventListener('abort', onAbort);
      queue.splice(queue.indexOf(pending), 1);
      if (queue.length === 0) this.#queues.delete(name);
      pending.endTry();
      pending.leave();
    }
  }

  async #inTurn(
    pending: Pending,
    queue: Pending[],
    both: ReadWriteLock,
    aborted: Promise<never>,
  ): Promise<Hold | null> {
    const { ifAvailable, mode, signal, steal } = pending.request;
    const lock = mode === 'shared' ? both.readLock() : both.writeLock();
    for (;;) {
      const [first] = queue as [Pending];
      if (first !== pending) {
        if (ifAvailable && first.waits) return null;
        const before = queue[queue.indexOf(pending) - 1] as Pending;
        await Promise.race([ifAvailable ? first.tried : before.left, aborted]);
        continue;
      }
      if (steal) return stolen(both);
      pending.wait = new AbortController();
      try {
        const options = { signal: pending.wait.signal };
        const hold = await lock.tryAcquire(options);
        if (hold !== null || ifAvailable) return hold;
        pending.waits = true;
        pending.endTry();
        return await lock.acquire({ ...options, waitTime: Infinity });
      } catch (error) {
        if (signal?.aborted === true) throw signal.reason;
        if (!pending.wait.signal.aborted) throw error;
      }
    }
  }
}

/** Not atomic: a waiter of another process may get the lock first. The thief then takes it from that waiter too. */
async function stolen(both: ReadWriteLock): Promise<Hold> {
  for (;;) {
    await both.readLock().forceUnlock();
    await both.writeLock().forceUnlock();
    const hold = await both.writeLock().tryAcquire();
    if (hold !== null) return hold;
  }
}

/** `AbortError` for a lost hold. The reason of a closed client stays. */
function lossOf(name: string, reason: unknown): Error {
  if ((reason as { code?: unknown } | undefined)?.code !== 'ERR_LOCK_LOST') return reason as Error;
  return new DOMException(`the lock "${name}" was stolen or lost`, { name: 'AbortError', cause: reason });
}
