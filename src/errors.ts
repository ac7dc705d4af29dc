import { quoted, shortened, visible } from './visible.js';

/** The stable `code` of each error class. Match errors by code or by class, never by message. */
export type LockErrorCode =
  | 'ERR_LOCK_TIMEOUT'
  | 'ERR_LOCK_NOT_OWNER'
  | 'ERR_LOCK_LOST'
  | 'ERR_LOCK_ABORTED'
  | 'ERR_LOCK_REDIS_UNAVAILABLE'
  | 'ERR_LOCK_CLIENT_CLOSED'
  | 'ERR_LOCK_INVALID_ARGUMENT'
  | 'ERR_LOCK_REFUSED'
  | 'ERR_LOCK_UNSUPPORTED_RUNTIME'
  | 'ERR_LOCK_CONCURRENT_CONTEXT'
  | 'ERR_LOCK_NON_REENTRANT'
  | 'ERR_LOCK_UPGRADE'
  | 'ERR_LOCK_UNKNOWN_PERMIT'
  | 'ERR_LOCK_NO_QUORUM'
  | 'ERR_LOCK_NOT_REPLICATED'
  | 'ERR_LOCK_MULTI_UNLOCK';

/** Base class of every error that the package throws itself. An error of your own code is never wrapped in one. */
export abstract class LockError extends Error {
  /**
   * Written out in each class: a minifier shortens the name of a class.
   *
   * @internal
   */
  static override readonly name: string = 'LockError';
  abstract readonly code: LockErrorCode;
  constructor(message: string, options?: ErrorOptions) {
    // A message may contain what a user or a server chose.
    super(visible(message), options);
    this.name = new.target.name;
  }

  /** The command that explains this error, such as `npx holdfast explain ERR_LOCK_TIMEOUT`. */
  get help(): string {
    return `npx holdfast explain ${this.code}`;
  }
}

/**
 * The lock, or too few permits, did not become free within `waitTime`. The call holds nothing. `tryLock` resolves with
 * `false` and `tryAcquire` with `null` or `false` instead of throwing this error.
 */
export class LockTimeoutError extends LockError {
  /** @internal */
  static override readonly name = 'LockTimeoutError';
  readonly code = 'ERR_LOCK_TIMEOUT';
  constructor(
    readonly lockName: string,
    /** The `waitTime` of the call, in milliseconds. */
    readonly waitTime: number,
    message = `${quoted(lockName)} was not free within ${waitTime} ms; increase waitTime or try again later`,
  ) {
    super(message);
  }
}

/**
 * `unlock()` was called outside of every hold that it could release. The lock is unchanged. The message names the hold
 * that this process has, if there is one, and what to do instead.
 */
export class NotOwnerError extends LockError {
  /** @internal */
  static override readonly name = 'NotOwnerError';
  readonly code = 'ERR_LOCK_NOT_OWNER';
  constructor(
    readonly lockName: string,
    message: string,
  ) {
    super(message);
  }
}

/**
 * Why a hold was lost.
 * - `expired`: the lease ended on this client's clock before Redis confirmed a renewal.
 * - `gone`: Redis replied that this owner no longer holds the lock: the lease ended, another client deleted the key or
 *   forced the lock open, or a failover or restart dropped it.
 * - `forced`: this client called `forceUnlock()`.
 * - `maxHoldTime`: the hold has lasted for its `maxHoldTime`, so the client renewed it no longer.
 */
export type LossReason = 'expired' | 'gone' | 'forced' | 'maxHoldTime';

/**
 * The hold ended before its release. Another owner may have acquired the lock since then, so the section may not have
 * been exclusive.
 */
export class LockLostError extends LockError {
  /** @internal */
  static override readonly name = 'LockLostError';
  readonly code = 'ERR_LOCK_LOST';
  /**
   * The value that the body of `withLock` or `withPermit` returned, if it had ended when the client noticed the loss.
   */
  readonly result: unknown;
  constructor(
    readonly lockName: string,
    readonly owner: string,
    readonly reason: LossReason,
    options?: ErrorOptions & { result?: unknown },
  ) {
    super(`the hold of ${quoted(lockName)} (owner ${owner}) was lost: ${LOSSES[reason]}`, options);
    this.result = options?.result;
  }
}

const LOSSES: Record<LossReason, string> = {
  expired: 'its lease ended before Redis confirmed a renewal',
  gone: 'Redis no longer has this owner (the lease ended, or the key was deleted, forced open or lost in a failover)',
  forced: 'this client called forceUnlock()',
  maxHoldTime: 'it has lasted for its maxHoldTime',
};

/**
 * The `signal` of the call was aborted while the call waited. `cause` is the reason of the signal. The call holds
 * nothing.
 */
export class LockAbortedError extends LockError {
  /** @internal */
  static override readonly name = 'LockAbortedError';
  readonly code = 'ERR_LOCK_ABORTED';
  constructor(
    readonly lockName: string,
    reason: unknown,
  ) {
    super(`the wait for ${quoted(lockName)} was aborted`, { cause: reason });
    this.name = 'AbortError';
  }
}

/**
 * Redis did not reply within the command deadline (`commandTimeout`).
 * - `outcome: 'none'`: the command changed nothing and never will.
 * - `outcome: 'unknown'`: the command may have run. The client releases in the background what the command acquired.
 */
export class RedisUnavailableError extends LockError {
  /** @internal */
  static override readonly name = 'RedisUnavailableError';
  readonly code = 'ERR_LOCK_REDIS_UNAVAILABLE';
  constructor(
    message: string,
    readonly outcome: 'none' | 'unknown',
    options?: ErrorOptions,
  ) {
    // The innermost cause, such as a refused connection: the reader of a log need not open three nested causes.
    // `instanceof Error` would fail here: Node creates socket errors in its own realm, which may differ from ours.
    const { message: root } = (causesOf(options?.cause).at(-1) ?? {}) as Partial<Error>;
    super(root === undefined || message.endsWith(`: ${root}`) ? message : `${message}: ${root}`, options);
  }
}

/** The error and its chain of causes, as far as they are objects. The chain may be a circle. */
function causesOf(error: unknown): readonly object[] {
  const chain = new Set<object>();
  let at = error;
  while (typeof at === 'object' && at !== null && !chain.has(at)) {
    chain.add(at);
    at = (at as Partial<Error>).cause;
  }
  return [...chain];
}

/**
 * Whether an error says that a hold or a permit was lost: a {@link LockLostError}, or any error that has one in its chain of
 * causes, such as the `AbortError` of a call that was given `hold.signal`.
 *
 * @param error - any value that was thrown.
 * @example
 * try {
 *   await lock.withLock(({ signal }) => work({ signal }));
 * } catch (error) {
 *   if (!isLockLost(error)) throw error;
 *   await checkWhatWasDone(); // another owner may have been inside
 * }
 */
export function isLockLost(error: unknown): boolean {
  const lost: LockErrorCode = 'ERR_LOCK_LOST';
  return causesOf(error).some((each) => (each as Partial<LockError>).code === lost);
}

/** Whether the body of a hold that was lost with `loss` failed for that. */
export function isForLoss(error: unknown, loss: unknown): boolean {
  const causes = causesOf(error);
  return causes.includes(loss as object) || (causes[0] as Partial<Error> | undefined)?.name === 'AbortError';
}

/** The client was closed before or during the call. */
export class ClientClosedError extends LockError {
  /** @internal */
  static override readonly name = 'ClientClosedError';
  readonly code = 'ERR_LOCK_CLIENT_CLOSED';
  /**
   * The value that the body of `withLock`, `withPermits` or `withPermit` returned, if the client was closed while it
   * ran.
   */
  readonly result: unknown;
  constructor(options?: ErrorOptions & { result?: unknown }) {
    super('the lock client is closed; create a new client with createClient()', options);
    this.result = options?.result;
  }
}

/** An argument or option has a wrong type or value. The client sent no command. */
export class InvalidArgumentError extends LockError {
  /** @internal */
  static override readonly name = 'InvalidArgumentError';
  readonly code = 'ERR_LOCK_INVALID_ARGUMENT';
  constructor(
    /** Path of the argument or option, such as `leaseTime` or `handOff.maxTime`. */
    readonly argument: string,
    /** The type or range that the argument must have. */
    readonly expectation: string,
    /** The given value. */
    readonly value: unknown,
    message = `${argument} must be ${expectation}, not ${shown(value)}`,
  ) {
    super(message);
  }
}

function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(shortened(value));
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value !== 'object' || value === null) return String(value);
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : 'an array';
  const kind = Object.prototype.toString.call(value).slice('[object '.length, -1);
  return kind === 'Object' ? 'an object' : `an object (${kind})`;
}

/**
 * Redis rejected the command: a permission is missing, memory is full, or the key has another type. The command changed
 * nothing. A rejected release continues in the background.
 */
export class RefusedError extends LockError {
  /** @internal */
  static override readonly name = 'RefusedError';
  readonly code = 'ERR_LOCK_REFUSED';
  constructor(
    message: string,
    /** The missing rule for `ACL SETUSER`, such as `+hset`; `undefined` if no permission is missing. */
    readonly rule: string | undefined,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/**
 * Fewer replicas than `replicas.acks` confirmed the acquired lock in time. The client releases the lock in the
 * background.
 */
export class NotReplicatedError extends LockError {
  /** @internal */
  static override readonly name = 'NotReplicatedError';
  readonly code = 'ERR_LOCK_NOT_REPLICATED';
  constructor(
    readonly acks: number,
    readonly confirmed: number,
  ) {
    super(
      `only ${confirmed} of ${acks} replicas confirmed the lock in time; the client releases it, so try again later`,
    );
  }
}

/**
 * This JavaScript runtime cannot tell which code awaits a hold, so `lock()` and `tryLock()` do not work in it.
 * `withLock`, `acquire` with `release`, and `{ context }` work.
 */
export class UnsupportedRuntimeError extends LockError {
  /** @internal */
  static override readonly name = 'UnsupportedRuntimeError';
  readonly code = 'ERR_LOCK_UNSUPPORTED_RUNTIME';
  constructor(method: string) {
    super(
      `${method}() needs the promise hooks of Node.js to find the code that awaits it, and this runtime does not ` +
        'provide them; use withLock(), acquire() and release(), or { context }',
    );
  }
}

/** Two acquisitions of one lock were in flight under one `LockContext`. The second one acquired nothing. */
export class ConcurrentContextError extends LockError {
  /** @internal */
  static override readonly name = 'ConcurrentContextError';
  readonly code = 'ERR_LOCK_CONCURRENT_CONTEXT';
  constructor(
    readonly lockName: string,
    readonly contextId: string,
  ) {
    super(`context ${contextId} is already acquiring ${quoted(lockName)}; use a separate LockContext for each flow`);
  }
}

/**
 * The call would upgrade a hold, which would deadlock: with itself, or with another holder that attempts the same
 * upgrade. Release the hold first, or begin with the stronger lock. Three calls are upgrades:
 * - a write lock inside a read hold of the same lock;
 * - a group multi-lock inside a hold of some, but not all, of its values;
 * - a lock inside a hold of the same name that is of another family. The families are: plain, fenced, fair and spin
 *   locks; the two halves of a read-write lock; group multi-locks of one group.
 */
export class LockUpgradeError extends LockError {
  /** @internal */
  static override readonly name = 'LockUpgradeError';
  readonly code = 'ERR_LOCK_UPGRADE';
  constructor(
    readonly lockName: string,
    why = 'a read hold cannot become a write hold; release it first, or begin with the write lock',
  ) {
    super(`${quoted(lockName)}: ${why}`);
  }
}

/** The owner of a non-reentrant lock tried to acquire the lock again. The existing hold is unchanged. */
export class NonReentrantError extends LockError {
  /** @internal */
  static override readonly name = 'NonReentrantError';
  readonly code = 'ERR_LOCK_NON_REENTRANT';
  constructor(readonly lockName: string) {
    super(
      `${quoted(lockName)} is not reentrant and this flow already holds it; release the hold first, or use getLock()`,
    );
  }
}

/** A member of a multi-lock whose release failed. */
export interface MemberFailure {
  /** Index of the member among the held members, in locking order. */
  readonly member: number;
  readonly lockName: string;
  readonly owner: string;
  readonly error: unknown;
}

/**
 * The release of some members of a multi-lock failed. The client tried every member. `failures` has one entry for each
 * failed member. An unanswered release continues in the background. If a member was lost before, the call rejects with
 * `LockLostError`, and this error is its `cause`.
 */
export class MultiUnlockError extends LockError {
  /** @internal */
  static override readonly name = 'MultiUnlockError';
  readonly code = 'ERR_LOCK_MULTI_UNLOCK';
  constructor(
    readonly lockName: string,
    readonly failures: readonly MemberFailure[],
  ) {
    const each = failures.map(({ lockName, error }) => `${quoted(lockName)}: ${messageOf(error)}`).join('; ');
    const count = failures.length === 1 ? '1 member' : `${failures.length} members`;
    super(`the release of ${count} of ${quoted(lockName)} failed: ${each}`, {
      cause: failures[0]?.error,
    });
  }
}

/** The result of one server in an attempt to acquire a RedLock. */
export interface ServerResult {
  /** Index of the server's lock among the locks that `getRedLock` was given. */
  readonly server: number;
  readonly lockName: string;
  /**
   * - `acquired`: the server granted the lock.
   * - `busy`: another owner holds the lock on this server.
   * - `failed`: `error` has the cause. Without an `error`, the reply came too late to count.
   */
  readonly outcome: 'acquired' | 'busy' | 'failed';
  readonly error: unknown;
}

/**
 * A RedLock could not reach a majority: too few servers were available, or their grants came when too little of the
 * lease was left. The client released every grant. `results` has one entry for each server.
 */
export class NoQuorumError extends LockError {
  /** @internal */
  static override readonly name = 'NoQuorumError';
  readonly code = 'ERR_LOCK_NO_QUORUM';
  constructor(
    readonly lockName: string,
    readonly quorum: number,
    readonly results: readonly ServerResult[],
  ) {
    const each = results.map(({ server, outcome, error }) => {
      return `${server + 1} ${outcome}${error === undefined ? '' : ` (${messageOf(error)})`}`;
    });
    super(
      `${quoted(lockName)} needs ${quorum} of ${results.length} servers; check the others or try again later: ${each.join(', ')}`,
    );
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const STOP = 'stop its work, because another caller may have the permit';

/**
 * At least one of the given permits is not taken: it was released before, or its lease ended and another caller may
 * have it. None of the given permits was released or changed.
 */
export class UnknownPermitError extends LockError {
  /** @internal */
  static override readonly name = 'UnknownPermitError';
  readonly code = 'ERR_LOCK_UNKNOWN_PERMIT';
  constructor(
    readonly lockName: string,
    readonly permitIds: readonly string[],
  ) {
    super(
      permitIds.length === 1
        ? `permit ${shortened(permitIds[0] as string)} of ${quoted(lockName)} is not taken: it was released before, or its lease ended; ${STOP}`
        : `not all of the permits ${shortened(permitIds.join(', '))} of ${quoted(lockName)} are taken: one was released before, or its ` +
            `lease ended; ${STOP}`,
    );
  }
}
