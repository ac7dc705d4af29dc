import { holdChannel } from '../diagnostics/channels.js';
import { HoldTrace } from '../diagnostics/traces.js';
import type { Timer } from '../clock.js';
import { ClientClosedError, LockLostError, UnknownPermitError } from '../errors.js';
import { checkAnyPermits, checkPermits, checkSemaphoreOptions } from '../locks/arguments.js';
import type { PermitsProtocol } from '../protocols/semaphore-protocol.js';
import { OwnerlessObject, type Granted, type MakeWaiter, type OwnerlessServices } from './ownerless-object.js';
import { LONG_WAIT_MS } from '../timing.js';

/** The options of `getSemaphore` and `getPermitExpirableSemaphore`. */
export interface SemaphoreOptions {
  /**
   * Number of permits with which the first use by this client creates the semaphore, unless it exists. An integer of at
   * least 0.
   *
   * @defaultValue the client creates no semaphore; some client has to call `trySetPermits`
   */
  permits?: number | undefined;
}

/** Number of semaphores whose set-up a client remembers. It repeats the set-up of a semaphore that it has forgotten. */
const MAX_SET_UP = 10_000;

/** The semaphores that one client uses. */
class UsedSemaphores {
  /** Maps the key of a semaphore to its set-up, which is pending or has succeeded. */
  readonly setUp = new Map<string, Promise<boolean>>();
  /** Maps the key of a semaphore to the number of waiting calls and the timer that checks for a missing set-up. */
  readonly waitedFor = new Map<string, { calls: number; timer: Timer }>();
}

const used = new WeakMap<OwnerlessServices, UsedSemaphores>();
/** Keys of the semaphores that the process has warned about. */
const warned = new Set<string>();

/** The common part of both semaphores: a number of permits that some client has to set once. */
export abstract class PermitSource extends OwnerlessObject {
  /** @internal */
  declare protected readonly protocol: PermitsProtocol;
  /**
   * @internal Number of permits with which the first use creates the semaphore; `undefined` if the options name none.
   */
  protected readonly declared: number | undefined;

  /** @internal */
  constructor(services: OwnerlessServices, protocol: PermitsProtocol, options: SemaphoreOptions | undefined) {
    super(services, protocol);
    const { permits } = checkSemaphoreOptions(options);
    this.declared = permits === undefined ? undefined : checkPermits(permits, undefined);
  }

  /**
   * Creates the semaphore with a number of free permits, unless it exists.
   *
   * @param permits - number of permits, 0 or more.
   * @returns `true` if this call created the semaphore, `false` if it exists already.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: `permits` is invalid. No command was sent.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply. With `outcome: 'unknown'` the
   *   request may have run once, and it will not run later.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @redisson `RPermitExpirableSemaphore#trySetPermits(int)`
   */
  abstract trySetPermits(permits: number): Promise<boolean>;

  /**
   * Adds permits and wakes waiters. A negative number removes free permits without a wait, and the number of free
   * permits may become negative. Permits that are taken stay taken.
   *
   * @param permits - number to add.
   * @throws the errors of `trySetPermits`.
   * @redisson `RSemaphore#addPermits(int)`, `RPermitExpirableSemaphore#addPermits(int)`. Differs: the call keeps an
   *   expiry of the key.
   */
  async addPermits(permits: number): Promise<void> {
    checkAnyPermits(permits);
    this.checkOpen();
    if (this.declared !== undefined) await this.setUp(this.declared);
    await this.change((lane) => this.protocol.addPermits(permits, lane));
  }

  /**
   * Reads from Redis how many permits are free.
   *
   * @returns the number; 0 if the semaphore does not exist. It is negative if more permits were removed than were free.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply within one command deadline.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @redisson `RSemaphore#availablePermits()`, `RPermitExpirableSemaphore#availablePermits()`
   */
  abstract availablePermits(): Promise<number>;

  /**
   * @internal Creates the semaphore once per client. Every request of a semaphore with declared permits waits for it.
   */
  protected setUp(permits: number): Promise<boolean> {
    const { setUp } = this.#used;
    const before = setUp.get(this.protocol.key);
    if (before !== undefined) return before;
    const [oldest] = setUp.keys();
    if (setUp.size >= MAX_SET_UP && oldest !== undefined) setUp.delete(oldest);
    const made = this.trySetPermits(permits);
    setUp.set(this.protocol.key, made);
    // This use rejects with the error. The next use tries again.
    made.catch(() => setUp.delete(this.protocol.key));
    return made;
  }

  get #used(): UsedSemaphores {
    let known = used.get(this.services);
    if (known === undefined) used.set(this.services, (known = new UsedSemaphores()));
    return known;
  }

  /** @internal Queues a waiter like the base class, and checks for a missing set-up if the wait is long. */
  protected override wait<T>(make: MakeWaiter<T>): Promise<Granted<T> | undefined> {
    return super.wait((granted, failed) => {
      const waiter = make(granted, failed);
      waiter.watch = this;
      return waiter;
    });
  }

  /** @internal */
  protected override tellGranted(permits: number, handedOff: boolean, askedAt: number): void {
    this.services.reports.permitsAcquired(this.protocol, permits, handedOff, askedAt);
  }

  /** @internal Runs the body of `withPermits` or `withPermit`, and releases the permits. */
  protected within<T>(
    permits: { release(): Promise<void> },
    count: number,
    owner: string,
    body: () => T | PromiseLike<T>,
  ): Promise<T> {
    return this.services.sections.run(() => this.#run(permits, count, owner, body));
  }

  async #run<T>(
    permits: { release(): Promise<void> },
    count: number,
    owner: string,
    body: () => T | PromiseLike<T>,
  ): Promise<T> {
    const grant = { owner, holdCount: 1, permits: count };
    const trace = holdChannel.hasSubscribers ? new HoldTrace(this.subject, grant) : undefined;
    const release = (): Promise<void> => trace?.releasing(permits.release()) ?? permits.release();
    const releaseFailed = (cause: unknown): void => this.services.reports.releaseFailed(this.protocol, owner, cause);
    let result: T;
    try {
      result = await (trace === undefined ? body() : trace.run(body));
    } catch (error) {
      await release().catch(releaseFailed);
      throw error;
    }
    try {
      await release();
    } catch (cause) {
      if (cause instanceof UnknownPermitError) throw new LockLostError(this.name, owner, 'gone', { cause, result });
      // `close()` does not release permits, so the caller must learn that they stay taken.
      if (cause instanceof ClientClosedError) throw new ClientClosedError({ cause, result });
      releaseFailed(cause);
    }
    return result;
  }

  /** @internal A call of this client begins to wait. */
  waitBegins(): void {
    const { waitedFor } = this.#used;
    const known = waitedFor.get(this.protocol.key);
    if (known !== undefined) {
      known.calls += 1;
      return;
    }
    const timer = this.services.clock.clock.setTimer(LONG_WAIT_MS, () => void this.#waitedLong());
    waitedFor.set(this.protocol.key, { calls: 1, timer });
  }

  /** @internal A call of this client no longer waits. */
  waitEnds(): void {
    const { waitedFor } = this.#used;
    const known = waitedFor.get(this.protocol.key);
    if (known === undefined) return;
    known.calls -= 1;
    if (known.calls > 0) return;
    known.timer.cancel();
    waitedFor.delete(this.protocol.key);
  }

  /**
   * Warns if the semaphore does not exist. A semaphore without free permits has a key. If the key is missing, nothing
   * ends the wait.
   */
  async #waitedLong(): Promise<void> {
    try {
      if (await this.protocol.exists()) return;
      // The key was deleted after the set-up.
      if (this.declared !== undefined) {
        await this.trySetPermits(this.declared);
        return;
      }
    } catch {
      return;
    }
    if (warned.has(this.protocol.key) || !this.#used.waitedFor.has(this.protocol.key)) return;
    warned.add(this.protocol.key);
    process.emitWarning(
      `a call has waited ${LONG_WAIT_MS / 1000} s for permits of semaphore "${this.name}", which is not in Redis; ` +
        'call trySetPermits(n) once, or create the handle with the option { permits: n }',
      { code: 'HOLDFAST_NOT_SET_UP' },
    );
  }
}
