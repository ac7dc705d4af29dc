import { warn } from '../warn.js';
import { holdChannel } from '../diagnostics/channels.js';
import { HoldTrace } from '../diagnostics/traces.js';
import type { Timer } from '../clock.js';
import { ClientClosedError, isForLoss, LockLostError, LockTimeoutError, UnknownPermitError } from '../errors.js';
import { checkAnyPermits, checkTimeToLive } from '../locks/arguments.js';
import { timeLeftNumber } from '../lease-time.js';
import type { PermitsProtocol } from '../protocols/semaphore-protocol.js';
import { OwnerlessObject, type Granted, type MakeWaiter, type OwnerlessServices } from './ownerless-object.js';
import { LONG_WAIT_MS } from '../timing.js';
import { quoted } from '../visible.js';

/** The options of `getSemaphore` and `getPermitExpirableSemaphore`. */
export interface SemaphoreOptions {
  /**
   * Number of permits with which calls through this handle create the semaphore if it does not exist, also after a loss
   * of its data. An integer of at least 0. If the semaphore exists, its number stays as it is.
   *
   * @defaultValue calls do not create the semaphore; some client has to call `trySetPermits`
   */
  permits?: number | undefined;
}

/** Number of semaphores whose comparison with the declared number a client remembers. */
const MAX_COMPARED = 10_000;

/** What a client knows of a semaphore for which a handle declares a number of permits. */
interface Compared {
  readonly declared: number;
  /** The other number that Redis had, if that is not certain yet. */
  doubted: number | undefined;
  /** Monotonic time, in ms, of the last comparison. */
  at: number;
}

/** A semaphore that calls of a client wait for. */
interface WaitedFor {
  calls: number;
  /** The number of permits that the first handle declared which has waited and declares one. */
  declared: number | undefined;
  /** Checks whether the semaphore exists. Absent after the warning that it does not. */
  timer: Timer | undefined;
}

/** The semaphores that one client uses. */
class UsedSemaphores {
  /** Maps the key of a semaphore to the comparison of its number of permits with the declared one. */
  readonly compared = new Map<string, Compared>();
  /** Maps the key of a semaphore to what the client knows of its waiting calls. */
  readonly waitedFor = new Map<string, WaitedFor>();
}

const used = new WeakMap<OwnerlessServices, UsedSemaphores>();
/** Maps the code of a warning to the keys of the semaphores that the process has warned about. */
const warned = new Map<string, Set<string>>();
/** Number of warnings with one code in one process. A program may use a semaphore for each user. */
const MAX_WARNINGS = 100;

const HOW_TO_SET_UP = 'call trySetPermits(n), or create every handle with the option { permits: n }';

/** The common part of both semaphores: a number of permits that some client has to set once. */
export abstract class PermitSource extends OwnerlessObject {
  /** @internal */
  declare protected readonly protocol: PermitsProtocol;

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
   * Deletes the semaphore, and for a permit-expirable semaphore the permits that are taken as well. Waiting calls try
   * again: a call of a handle with the option `permits` creates the semaphore again.
   *
   * @returns `true` if this call deleted the semaphore, `false` if it did not exist.
   * @throws the errors of `addPermits`.
   * @example
   * await semaphore.delete();
   * await semaphore.trySetPermits(10);
   * @redisson `RObject#delete()`. Differs: the call wakes the waiters. A key with another kind of value is refused.
   */
  async delete(): Promise<boolean> {
    this.checkOpen();
    return this.change((lane) => this.protocol.delete(lane));
  }

  /**
   * Reads from Redis whether the semaphore exists. A semaphore without free permits does.
   *
   * @throws the errors of `availablePermits`.
   * @redisson `RObject#isExists()`
   */
  async isExists(): Promise<boolean> {
    this.checkOpen();
    return this.protocol.exists();
  }

  /**
   * Sets the time after which Redis deletes the semaphore, and for a permit-expirable semaphore the permits that are
   * taken as well.
   *
   * @param timeToLive - milliseconds from now, at least 1.
   * @returns `true` if the semaphore has the new time, `false` if it does not exist.
   * @throws the errors of `addPermits`.
   * @example
   * await semaphore.expire(3_600_000);
   * @redisson `RExpirable#expire(Duration)`
   */
  async expire(timeToLive: number): Promise<boolean> {
    checkTimeToLive(timeToLive);
    this.checkOpen();
    return this.change((lane) => this.protocol.expire(timeToLive, lane));
  }

  /**
   * Reads from Redis when it will delete the semaphore.
   *
   * @returns milliseconds; -2 if the semaphore does not exist, -1 if it does not expire.
   * @throws the errors of `availablePermits`.
   * @redisson `RExpirable#remainTimeToLive()`
   */
  async remainTimeToLive(): Promise<number> {
    this.checkOpen();
    return timeLeftNumber(await this.protocol.timeLeft());
  }

  get #used(): UsedSemaphores {
    let known = used.get(this.services);
    if (known === undefined) used.set(this.services, (known = new UsedSemaphores()));
    return known;
  }

  /**
   * @internal Reads the number of permits, free and taken; `undefined` if the semaphore does not exist.
   */
  protected abstract total(): Promise<number | undefined>;
  /** @internal Whether {@link total} includes the permits that other clients have taken. */
  protected abstract readonly countsTaken: boolean;

  /** @internal Queues a waiter like the base class, and reports a semaphore that does not exist. */
  protected override wait<T>(make: MakeWaiter<T>): Promise<Granted<T> | undefined> {
    return super.wait((granted, failed) => {
      const waiter = make(granted, (error) => {
        this.#compare();
        if (waiter.foundMissing && error instanceof LockTimeoutError) this.#warnOfNone();
        failed(error);
      });
      waiter.watch = this;
      return waiter;
    });
  }

  /** @internal */
  protected override tellGranted(permits: number, handedOff: boolean, askedAt: number): void {
    this.#compare();
    this.services.reports.permitsAcquired(this.protocol, permits, handedOff, askedAt);
  }

  /** Warns if the semaphore has another number of permits than this handle declares. */
  #compare(): void {
    const { key, declared } = this.protocol;
    if (declared === undefined) return;
    const { compared } = this.#used;
    const before = compared.get(key);
    const { clock } = this.services.clock;
    if (before === undefined) {
      const [oldest] = compared.keys();
      if (compared.size >= MAX_COMPARED && oldest !== undefined) compared.delete(oldest);
      const first = { declared, doubted: undefined, at: clock.monotonic() };
      compared.set(key, first);
      void this.#compareWithRedis(first);
    } else if (before.declared !== declared) {
      this.#warnOfOther(declared, `another handle of this process declares ${before.declared}`);
    } else if (before.doubted !== undefined && clock.monotonic() >= before.at + LONG_WAIT_MS) {
      before.at = clock.monotonic();
      void this.#compareWithRedis(before);
    }
  }

  async #compareWithRedis(compared: Compared): Promise<void> {
    const { declared, doubted } = compared;
    const total = await this.total().catch(() => undefined);
    // The permits that are missing may be taken in other processes.
    const isOther = this.countsTaken ? total !== declared : (total ?? 0) > declared;
    compared.doubted = isOther ? total : undefined;
    if (compared.doubted === undefined) return;
    if (this.countsTaken) this.#warnOfOther(declared, `it has ${total}`);
    // A release of this client may have reached Redis before its reply came.
    else if (total === doubted) this.#warnOfOther(declared, `it has at least ${total}`);
  }

  #warnOfOther(declared: number, found: string): void {
    this.#warn(
      'HOLDFAST_OTHER_PERMITS',
      `a handle of semaphore ${quoted(this.name)} declares { permits: ${declared} }, but ${found}; the option changes no ` +
        'semaphore that exists: declare the same number everywhere, or call addPermits(difference) once',
    );
  }

  #warnOfNone(): void {
    this.#warn(
      'HOLDFAST_NOT_SET_UP',
      `a call got no permits of semaphore ${quoted(this.name)}, because the semaphore is not in Redis; ${HOW_TO_SET_UP}`,
    );
  }

  /** @internal A release of permits of this client found no semaphore, and created it with these permits alone. */
  protected warnOfLoss(permits: number): void {
    if (this.protocol.declared !== undefined) return;
    this.#warn(
      'HOLDFAST_NOT_SET_UP',
      `Redis has lost semaphore ${quoted(this.name)}, and a release has created it again with no more than ${permits} ` +
        `permits; add the others with addPermits(n), and create every handle with the option { permits: n }`,
    );
  }

  /** Warns once for each semaphore and code, up to a number of warnings. */
  #warn(code: string, message: string): void {
    const { key } = this.protocol;
    const keys = warned.get(code) ?? new Set();
    if (keys.has(key) || keys.size === MAX_WARNINGS) return;
    warned.set(code, keys.add(key));
    const isLast = keys.size === MAX_WARNINGS;
    warn(code, isLast ? `${message} (${MAX_WARNINGS} warnings with this code: this process writes no more)` : message);
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
    const releaseFailed = (cause: unknown): void =>
      this.services.reports.report('releaseFailed', this.protocol, { owner, cause });
    let result: T;
    try {
      result = await (trace === undefined ? body() : trace.run(body));
    } catch (error) {
      await release().catch((cause: unknown) => {
        if (!(cause instanceof UnknownPermitError && isForLoss(error, cause))) return releaseFailed(cause);
        throw new LockLostError(this.name, owner, 'gone', { cause: error });
      });
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
    const { key, declared } = this.protocol;
    const { waitedFor } = this.#used;
    let known = waitedFor.get(key);
    if (known === undefined) waitedFor.set(key, (known = { calls: 0, declared, timer: this.#lookLater() }));
    known.calls += 1;
    if (declared === undefined) return;
    known.declared ??= declared;
    known.timer ??= this.#lookLater();
  }

  #lookLater(): Timer {
    return this.services.clock.clock.setTimer(LONG_WAIT_MS, () => void this.#waitedLong());
  }

  /** @internal A call of this client no longer waits. */
  waitEnds(): void {
    const { waitedFor } = this.#used;
    const known = waitedFor.get(this.protocol.key);
    if (known === undefined) return;
    known.calls -= 1;
    if (known.calls > 0) return;
    known.timer?.cancel();
    waitedFor.delete(this.protocol.key);
  }

  /**
   * Checks that the semaphore still exists: no message tells a waiting call that Redis has lost it. A semaphore without
   * free permits has a key.
   */
  async #waitedLong(): Promise<void> {
    const { key } = this.protocol;
    const { waitedFor } = this.#used;
    const waited = waitedFor.get(key);
    if (waited === undefined) return;
    const exists = await this.protocol.exists().catch(() => true);
    // Permits that are still taken stay taken. The message wakes the calls.
    if (!exists && waited.declared !== undefined) await this.trySetPermits(waited.declared).catch(() => undefined);
    if (waitedFor.get(key) !== waited) return;
    this.#compare();
    waited.timer = exists || waited.declared !== undefined ? this.#lookLater() : undefined;
    if (waited.timer === undefined)
      this.#warn(
        'HOLDFAST_NOT_SET_UP',
        `a call has waited ${LONG_WAIT_MS / 1000} s for permits of semaphore ${quoted(this.name)}, which is not in Redis; ` +
          HOW_TO_SET_UP,
      );
  }
}
