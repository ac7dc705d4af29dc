import type { FlowHold } from './flow.js';
import { runInside } from './flow.js';
import type { HoldRecord } from './hold-record.js';
import { checkLease } from './lease-time.js';

/**
 * Told when a hold can no longer be given back because nothing refers to it. It only warns: a lock kept for the life
 * of the process is a legitimate use.
 */
const leaked = new FinalizationRegistry<HoldRecord>((record) => {
  if (record.state !== 'open') return;
  const since = record.site === undefined ? '' : ` taken at ${record.site.toString()}`;
  process.emitWarning(
    `the hold on "${record.tenure.protocol.name}"${since} can no longer be given back: nothing refers to it. ` +
      'It is kept and renewed until close().',
    { code: 'HOLDFAST_HOLD_LEAKED' },
  );
});

/** From the first renewal on: watching every short section would cost it more than the rest of its bookkeeping. */
export function watchForLeak(record: HoldRecord): void {
  if (record.hold === undefined) return;
  leaked.register(record.hold, record, record);
  record.hold = undefined;
}

/** One hold of a lock: what `acquire()` and `tryAcquire()` give, and what `withLock()` passes to its body. */
export class Hold implements FlowHold, AsyncDisposable {
  readonly #record: HoldRecord;

  /** @internal */
  constructor(record: HoldRecord) {
    this.#record = record;
    record.hold = this;
  }

  /** The name that the lock was asked for by. */
  get lockName(): string {
    return this.#record.tenure.protocol.name;
  }

  /** `<client id>:<number>`, the field in Redis. All holds nested in one another share it. */
  get owner(): string {
    return this.#record.tenure.owner;
  }

  /**
   * Aborts once when the hold is lost (its `reason` is the `LockLostError`) or the client is closed
   * (`ClientClosedError`), no later than the moment from which somebody else may be inside. Reading it looks at the
   * clock first.
   */
  get signal(): AbortSignal {
    this.#record.tenure.check();
    return this.#record.signal;
  }

  /** ms for which the lock is surely held, counted from now; 0 if it is not, or if nobody can say. */
  validFor(): number {
    return this.#record.state === 'open' ? this.#record.tenure.validFor() : 0;
  }

  /**
   * Makes the lease of this hold last at least `leaseTime` ms from now. Never shortens it.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: before any command.
   * @throws {LockLostError} `ERR_LOCK_LOST`: the lock was lost.
   * @throws {NotOwnerError} `ERR_LOCK_NOT_OWNER`: the hold was given back.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: unanswered; the lease is what it was, or longer.
   */
  async extend(leaseTime: number): Promise<void> {
    return this.#record.tenure.extend(this.#record, checkLease(leaseTime));
  }

  /**
   * Gives the hold back. Every call returns the promise of the first one.
   *
   * @throws {LockLostError} `ERR_LOCK_LOST`: it was lost before.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: unanswered; it goes on being given back in the
   *   background, and ends with its lease at the latest.
   */
  release(): Promise<void> {
    leaked.unregister(this.#record);
    return this.#record.tenure.release(this.#record);
  }

  /** Runs `fn` inside this hold: its calls on the lock re-enter. */
  run<T>(fn: () => T): T {
    return runInside(this, fn);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  /** @internal A flow stays inside until the hold is given back, also when it has been lost. */
  get open(): boolean {
    return this.#record.aroundItsFlow;
  }

  /** @internal */
  static recordOf(hold: Hold): HoldRecord {
    return hold.#record;
  }
}

/** A hold of a fenced lock. */
export class FencedHold extends Hold {
  /**
   * The fencing token that this hold was granted with. Every later one is larger, so a resource that remembers the
   * largest it has seen can turn away whoever lost the lock without noticing.
   */
  get token(): bigint {
    return Hold.recordOf(this).token as bigint;
  }
}

export const holdFor = (record: HoldRecord): Hold =>
  record.token === undefined ? new Hold(record) : new FencedHold(record);
