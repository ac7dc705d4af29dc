import { runOutside, type FlowHold } from './flow.js';

const FORMAT = Symbol.for('holdfast.context.1');

/** Which parts of a key are locked. */
export interface LockedParts extends Iterable<string> {
  overlaps(other: LockedParts): boolean;
}

/** A lock that a context is acquiring. */
export interface ContextCall {
  /** Identifies the client and the key. */
  readonly identity: string;
  /** What is locked of the key; absent: all of it. */
  readonly parts: LockedParts | undefined;
}

/** The holds and pending acquisitions of a context. */
export interface ContextHolds {
  /** By client and lock. The holds of one lock are listed outermost first. */
  readonly holds: Map<string, FlowHold[]>;
  /** The acquisitions that are pending under the context. */
  readonly acquiring: Set<ContextCall>;
}

/**
 * An explicit owner of holds. Every call with `{ context }` acts for this owner, whichever async flow makes the call.
 * Use a context for a begin/end pair of callbacks, or for each task of a scheduler that runs several flows in one async
 * context.
 *
 * A context stands for one flow. If an acquisition under the context is pending, a second one of the same lock rejects
 * with `ConcurrentContextError` (`ERR_LOCK_CONCURRENT_CONTEXT`).
 *
 * @example
 * const context = new LockContext();
 * await lock.lock({ context });
 * try {
 *   await work();
 * } finally {
 *   await lock.unlock({ context });
 * }
 */
export class LockContext {
  static #made = 0;
  /** A label for messages, such as `context-1`. In Redis, every outermost hold has an owner id of its own. */
  readonly id: string;
  /** @internal */
  readonly [FORMAT]: ContextHolds = { holds: new Map(), acquiring: new Set() };

  constructor() {
    this.id = `context-${++LockContext.#made}`;
  }
}

/** Also returns `true` for a context that another copy of the package created in this process. */
export function isLockContext(value: unknown): value is LockContext {
  return typeof value === 'object' && value !== null && FORMAT in value;
}

export const holdsOf = (context: LockContext): ContextHolds => context[FORMAT];

/**
 * Whether an acquisition that is pending under the context overlaps the call. Two acquisitions of one group overlap if
 * they have a value in common. Any other lock covers its whole key.
 */
export function isConcurrent(context: LockContext, { identity, parts }: ContextCall): boolean {
  return [...holdsOf(context).acquiring].some((other) => {
    if (other.identity !== identity) return false;
    return parts === undefined || other.parts === undefined || parts.overlaps(other.parts);
  });
}

export const lockContext = {
  /**
   * Runs `fn` outside of every hold around the caller, as a new thread would. Use it for a long-lived worker that is
   * started inside a hold, and in a scheduler that runs a task of one flow in the async context of another flow.
   */
  run<T>(fn: () => T): T {
    return runOutside(fn);
  },
};
