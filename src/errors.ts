/** Every error of the package, each with a stable `code` to match on. */

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

export abstract class LockError extends Error {
  abstract readonly code: LockErrorCode;
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The lock stayed busy for the whole of `waitTime`. `tryLock` and `tryAcquire` answer `false` and `null` instead. */
export class LockTimeoutError extends LockError {
  readonly code = 'ERR_LOCK_TIMEOUT';
  constructor(
    readonly lockName: string,
    readonly waitTime: number,
  ) {
    super(`"${lockName}" was busy for ${waitTime} ms`);
  }
}

/** The caller is not inside a hold that it could give back. The lock is as it was. */
export class NotOwnerError extends LockError {
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
 * - `expired`: its deadline passed and no renewal had confirmed it.
 * - `gone`: Redis said that the owner does not hold the lock any more (lease over, deleted, forced, failover, restart).
 * - `forced`: `forceUnlock()` of this client.
 */
export type LossReason = 'expired' | 'gone' | 'forced';

/** The hold ended before it was given back: somebody else may have been inside since. */
export class LockLostError extends LockError {
  readonly code = 'ERR_LOCK_LOST';
  /** What the body of `withLock` returned, if it had ended when the loss was noticed. */
  readonly result: unknown;
  constructor(
    readonly lockName: string,
    readonly owner: string,
    readonly reason: LossReason,
    options?: ErrorOptions & { result?: unknown },
  ) {
    super(`lost "${lockName}" (owner ${owner}): ${LOSSES[reason]}`, options);
    this.result = options?.result;
  }
}

const LOSSES: Record<LossReason, string> = {
  expired: 'its lease was not confirmed before the local deadline',
  gone: 'Redis does not know this owner any more',
  forced: 'it was forced open by this client',
};

/** The caller's signal fired while it waited. `cause` is the signal's reason. Nothing is held. */
export class LockAbortedError extends LockError {
  readonly code = 'ERR_LOCK_ABORTED';
  constructor(
    readonly lockName: string,
    reason: unknown,
  ) {
    super(`the wait for "${lockName}" was aborted`, { cause: reason });
    this.name = 'AbortError';
  }
}

/**
 * Redis did not answer within the command deadline.
 * - `outcome: 'none'`: nothing was changed, and nothing will be.
 * - `outcome: 'unknown'`: the command may have run. What it took is given back in the background.
 */
export class RedisUnavailableError extends LockError {
  readonly code = 'ERR_LOCK_REDIS_UNAVAILABLE';
  constructor(
    message: string,
    readonly outcome: 'none' | 'unknown',
    options?: ErrorOptions,
  ) {
    const root = rootOf(options?.cause);
    super(message.endsWith(root) ? message : message + root, options);
  }
}

/** What began it, such as a connection that was refused: else it would be found three causes down. */
function rootOf(cause: unknown): string {
  // Not `instanceof Error`: Node makes those of sockets in a realm of its own, which need not be ours.
  const { message, cause: deeper } = (cause ?? {}) as Partial<Error>;
  return deeper === undefined ? (message === undefined ? '' : `: ${message}`) : rootOf(deeper);
}

/** `close()` was called on the client. */
export class ClientClosedError extends LockError {
  readonly code = 'ERR_LOCK_CLIENT_CLOSED';
  /** What the body of `withLock` returned, if the client was closed while it ran. */
  readonly result: unknown;
  constructor(options?: ErrorOptions & { result?: unknown }) {
    super('the lock client is closed', options);
    this.result = options?.result;
  }
}

/** An argument or option is not what it must be. No command was sent. */
export class InvalidArgumentError extends LockError {
  readonly code = 'ERR_LOCK_INVALID_ARGUMENT';
  constructor(
    readonly argument: string,
    readonly expectation: string,
    readonly value: unknown,
  ) {
    super(`${argument} must be ${expectation}, not ${shown(value)}`);
  }
}

function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value !== 'object' || value === null) return String(value);
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : 'an array';
  const kind = Object.prototype.toString.call(value).slice('[object '.length, -1);
  return kind === 'Object' ? 'an object' : `an object (${kind})`;
}

/** Redis refused the command for good (permissions, memory, a key of another type). Nothing was changed; a release goes on. */
export class RefusedError extends LockError {
  readonly code = 'ERR_LOCK_REFUSED';
  constructor(
    message: string,
    /** What `ACL SETUSER` has to be told, such as `+hset`, where a permission is missing. */
    readonly rule: string | undefined,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The lock was taken, but fewer replicas than asked for confirmed it in time. It is being given back. */
export class NotReplicatedError extends LockError {
  readonly code = 'ERR_LOCK_NOT_REPLICATED';
  constructor(
    readonly acks: number,
    readonly confirmed: number,
  ) {
    super(`only ${confirmed} of ${acks} replicas confirmed the lock in time`);
  }
}

/** This JavaScript runtime cannot tell which code awaited a hold. `withLock`, `acquire` and `{ context }` work. */
export class UnsupportedRuntimeError extends LockError {
  readonly code = 'ERR_LOCK_UNSUPPORTED_RUNTIME';
  constructor(method: string) {
    super(
      `${method}() needs promise hooks to know which code awaited it, and this runtime has none that work; ` +
        'use withLock(), acquire() and release(), or { context }',
    );
  }
}

/** Two acquisitions of one lock were in flight under one `LockContext`. The second one took nothing. */
export class ConcurrentContextError extends LockError {
  readonly code = 'ERR_LOCK_CONCURRENT_CONTEXT';
  constructor(
    readonly lockName: string,
    readonly contextId: string,
  ) {
    super(`context ${contextId} is already acquiring "${lockName}"; give every flow a context of its own`);
  }
}

/**
 * A hold cannot become more than it is. It would wait for ever: for its own end, or for another one that asks for the
 * same. Give it back first, or begin with all that is needed.
 * - A write lock was asked for inside a read hold of the same lock.
 * - A group multi-lock was asked for by a flow that holds some of its values, but not all.
 * - A lock was asked for inside a hold of the same name of another kind. The kinds that nest in one another are: plain,
 *   fenced, fair and spin locks; the two halves of a read-write lock; group multi-locks of one group.
 */
export class LockUpgradeError extends LockError {
  readonly code = 'ERR_LOCK_UPGRADE';
  constructor(
    readonly lockName: string,
    why = 'a read hold cannot become a write hold; give it back first, or begin with the write lock',
  ) {
    super(`"${lockName}": ${why}`);
  }
}

/** The owner of a non-reentrant lock asked for it again. Its hold is as it was. */
export class NonReentrantError extends LockError {
  readonly code = 'ERR_LOCK_NON_REENTRANT';
  constructor(readonly lockName: string) {
    super(`"${lockName}" is not reentrant and this flow already holds it`);
  }
}

/** A member of a multi-lock that could not be given back. */
export interface MemberFailure {
  /** Its place among the members that were held, in the order in which they are locked. */
  readonly member: number;
  readonly lockName: string;
  readonly owner: string;
  readonly error: unknown;
}

/**
 * Some members of a multi-lock could not be given back; all were tried. `failures` has one entry for each. What was
 * unanswered goes on being given back in the background. Where a member had been lost, the call rejects with
 * `LockLostError` and this error is its `cause`.
 */
export class MultiUnlockError extends LockError {
  readonly code = 'ERR_LOCK_MULTI_UNLOCK';
  constructor(
    readonly lockName: string,
    readonly failures: readonly MemberFailure[],
  ) {
    const each = failures.map(({ lockName, error }) => `"${lockName}": ${messageOf(error)}`).join('; ');
    super(`${failures.length} of the members of "${lockName}" could not be given back: ${each}`, {
      cause: failures[0]?.error,
    });
  }
}

/** What one server of a RedLock said. */
export interface ServerResult {
  /** Its place among the locks that the RedLock was made of. */
  readonly server: number;
  readonly lockName: string;
  /** `busy`: somebody else holds it there. `failed`: `error` says why; none: free or busy, but said too late to count. */
  readonly outcome: 'acquired' | 'busy' | 'failed';
  readonly error: unknown;
}

/**
 * Too few servers of a RedLock could be asked for a majority to be possible, or their grants came when too little of
 * the lease was left. What was granted has been given back. `results` has one entry for each server.
 */
export class NoQuorumError extends LockError {
  readonly code = 'ERR_LOCK_NO_QUORUM';
  constructor(
    readonly lockName: string,
    readonly quorum: number,
    readonly results: readonly ServerResult[],
  ) {
    const each = results.map(({ server, outcome, error }) => {
      return `${server + 1} ${outcome}${error === undefined ? '' : ` (${messageOf(error)})`}`;
    });
    super(`"${lockName}" needs ${quorum} of ${results.length} servers: ${each.join(', ')}`);
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/**
 * None of these permits was given back or changed: one of them is not taken, or not any more (given back before, or its
 * lease is over and somebody else may have it).
 */
export class UnknownPermitError extends LockError {
  readonly code = 'ERR_LOCK_UNKNOWN_PERMIT';
  constructor(
    readonly lockName: string,
    readonly permitIds: readonly string[],
  ) {
    super(
      `"${lockName}" does not know (any more) ${permitIds.length === 1 ? 'the permit' : 'all of the permits'} ${permitIds.join(', ')}`,
    );
  }
}
