import { ConcurrentContextError } from '../errors.js';
import { runOutside, type FlowHold } from './flow.js';

const FORMAT = Symbol.for('holdfast.context.1');

/** The values of a group that a lock locks. Calls for the same values wait in one line. */
export interface LockedValues extends Iterable<string> {
  /** A short name, equal for equal values. */
  readonly line: string;
  covers(other: LockedValues): boolean;
  overlaps(other: LockedValues): boolean;
}

/** A lock that a context is acquiring. */
interface ContextCall {
  readonly lockName: string;
  /** The same for all acquisitions that may exclude each other. */
  readonly identity: string;
  /** The values that the call locks. Absent: the whole key. */
  readonly lockedValues: LockedValues | undefined;
  /** The list of the context that keeps the hold. */
  readonly list: string;
}

/** The holds and pending acquisitions of a context. */
interface ContextHolds {
  /** By the list that they are in, outermost first. */
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

/** The holds of a list of the context, outermost first. A lock of one name has a list for each client. */
export const holdsUnder = (context: LockContext, list: string): readonly FlowHold[] =>
  context[FORMAT].holds.get(list) ?? [];

/** All holds of the context, of any lock and client. */
export const allHoldsUnder = (context: LockContext): readonly FlowHold[] => [...context[FORMAT].holds.values()].flat();

export function forgetUnder(context: LockContext, list: string, hold: FlowHold): void {
  const { holds } = context[FORMAT];
  const others = holdsUnder(context, list).filter((other) => other !== hold);
  if (others.length > 0) holds.set(list, others);
  else holds.delete(list);
}

/** Acquires under a context, and keeps the hold there. */
export async function acquireUnder<H extends FlowHold>(
  context: LockContext,
  call: ContextCall,
  acquire: () => Promise<H>,
): Promise<H> {
  const { holds, acquiring } = context[FORMAT];
  if ([...acquiring].some((other) => overlap(other, call))) throw new ConcurrentContextError(call.lockName, context.id);
  acquiring.add(call);
  try {
    const hold = await acquire();
    holds.set(call.list, [...holdsUnder(context, call.list).filter(({ open }) => open), hold]);
    return hold;
  } finally {
    acquiring.delete(call);
  }
}

/** Two acquisitions of one group overlap if they have a value in common. Any other lock covers its whole key. */
const overlap = (a: ContextCall, b: ContextCall): boolean =>
  a.identity === b.identity &&
  (a.lockedValues === undefined || b.lockedValues === undefined || a.lockedValues.overlaps(b.lockedValues));

export const lockContext = {
  /**
   * Runs `fn` outside of every hold around the caller, as a new thread would. Use it for a long-lived worker that is
   * started inside a hold, and in a scheduler that runs a task of one flow in the async context of another flow.
   */
  run<T>(fn: () => T): T {
    return runOutside(fn);
  },
};
