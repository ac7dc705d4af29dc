import { runOutside } from './flow.js';
import type { SingleHold } from '../holding/single-hold.js';

const FORMAT = Symbol.for('holdfast.context.1');

/** What a context has, by client and lock. */
export interface ContextHolds {
  /** Outermost first. */
  readonly holds: Map<string, SingleHold[]>;
  /** Locks that are being acquired under it right now. */
  readonly acquiring: Set<string>;
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

export const lockContext = {
  /**
   * Runs `fn` outside of every hold around the caller, like a new thread. For long-lived workers that are started
   * inside a hold, and for schedulers that run one flow's task in another flow's async context.
   */
  run<T>(fn: () => T): T {
    return runOutside(fn);
  },
};
