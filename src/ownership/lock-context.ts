import { runOutside, type FlowHold } from './flow.js';

const FORMAT = Symbol.for('holdfast.context.1');

/** Which parts of a key are locked. */
export interface LockedParts extends Iterable<string> {
  overlaps(other: LockedParts): boolean;
}

/** A lock that a context is acquiring. */
export interface ContextCall {
  /** The client and the key. */
  readonly identity: string;
  /** What is locked of the key; absent: all of it. */
  readonly parts: LockedParts | undefined;
}

/** What a context has, by client and lock. */
export interface ContextHolds {
  /** Outermost first. */
  readonly holds: Map<string, FlowHold[]>;
  /** Locks that are being acquired under it right now. */
  readonly acquiring: Set<ContextCall>;
}

/**
 * A named owner: whoever passes it as `{ context }` acts for it, in whatever flow. Give one to a begin/end pair, or to
 * a scheduler that runs several flows in one async context. One context is one flow: two acquisitions of the same lock
 * in flight under it are refused.
 */
export class LockContext {
  static #made = 0;
  /** For people to read; in Redis every outermost hold has an owner id of its own. */
  readonly id: string;
  /** @internal */
  readonly [FORMAT]: ContextHolds = { holds: new Map(), acquiring: new Set() };

  constructor() {
    this.id = `context-${++LockContext.#made}`;
  }
}

/** Also true for a context made by another copy of the package in this process. */
export function isLockContext(value: unknown): value is LockContext {
  return typeof value === 'object' && value !== null && FORMAT in value;
}

export const holdsOf = (context: LockContext): ContextHolds => context[FORMAT];

/**
 * Whether the context is acquiring what the call asks for, or a part of it. Values of one group are parts. A lock of any
 * other kind is all of its key.
 */
export function isConcurrent(context: LockContext, { identity, parts }: ContextCall): boolean {
  return [...holdsOf(context).acquiring].some((other) => {
    if (other.identity !== identity) return false;
    return parts === undefined || other.parts === undefined || parts.overlaps(other.parts);
  });
}

export const lockContext = {
  /**
   * Runs `fn` outside of every hold around the caller, like a new thread. For long-lived workers that are started
   * inside a hold, and for schedulers that run one flow's task in another flow's async context.
   */
  run<T>(fn: () => T): T {
    return runOutside(fn);
  },
};
