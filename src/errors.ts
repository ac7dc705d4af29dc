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
  | 'ERR_LOCK_NOT_REPLICATED';

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
    super(message, options);
  }
}

/** `close()` was called on the client. */
export class ClientClosedError extends LockError {
  readonly code = 'ERR_LOCK_CLIENT_CLOSED';
  constructor() {
    super('the lock client is closed');
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
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object';
  return String(value);
}

/** Redis refused the command for good (permissions, memory, a key of another type). Nothing was changed. */
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
 * A write lock was asked for inside a read hold of the same lock. It would wait for ever: for the end of that hold, or
 * of another reader's that asks for the same. Give the read hold back first, or begin with the write lock.
 */
export class LockUpgradeError extends LockError {
  readonly code = 'ERR_LOCK_UPGRADE';
  constructor(readonly lockName: string) {
    super(`a read hold of "${lockName}" cannot become a write hold; give it back first, or begin with the write lock`);
  }
}

/** The owner of a non-reentrant lock asked for it again. Its hold is as it was. */
export class NonReentrantError extends LockError {
  readonly code = 'ERR_LOCK_NON_REENTRANT';
  constructor(readonly lockName: string) {
    super(`"${lockName}" is not reentrant and this flow already holds it`);
  }
}

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
