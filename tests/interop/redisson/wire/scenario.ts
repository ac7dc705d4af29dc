import type { Reason } from '../../../support/java/deviation-reasons.js';
import type { JvmObject } from '../jvm.js';

/** The steps of both sides at the same time, on separate keys, and their comparison. */
export interface Step {
  /** `A.1`: client A, thread 1. */
  readonly actor: string;
  /** Names are relative to the keys of the kind. */
  readonly object: JvmObject;
  readonly method: string;
  /** As in Java. `$p` is the result of the step with `as: 'p'`. */
  readonly args: readonly unknown[];
  readonly as?: string;
  /** The call is to wait; the step ends when it does. */
  readonly waits?: true;
  /** Actors whose waiting calls end with this step. */
  readonly wakes?: readonly string[];
  readonly differs?: readonly Difference[];
}

/** For intended differences: the expectation for each side. */
export interface Difference {
  readonly why: Reason;
  /** Result, or `ERR_...` and the Java class. */
  readonly result?: readonly [theirs: unknown, ours: unknown];
  readonly woken?: readonly [theirs: unknown, ours: unknown];
  readonly published?: readonly [theirs: readonly string[], ours: readonly string[]];
  /** Remaining ms of each key, with a tolerance of half a second for the time passed. */
  readonly ttl?: Readonly<Record<string, readonly [theirs: number, ours: number]>>;
  /** Of a sorted set: by how many ms our score of each member is later. */
  readonly scores?: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Keys whose time to live, or whose times in values, are independent on each side. */
  readonly ownTimes?: readonly string[];
  /** Keys that only one of them has. */
  readonly onlyTheirs?: readonly string[];
  readonly onlyOurs?: readonly string[];
  /** The difference occurs or not, depending on the timing. */
  readonly orNone?: true;
  /** Only in these versions of Redisson. */
  readonly in?: readonly string[];
}

export interface Scenario {
  readonly name: string;
  readonly steps: readonly Step[];
  /** Versions with the tested feature. Absent: all. */
  readonly in?: readonly string[];
}

/** The watchdog's lease of all clients: so long that no renewal comes between two steps. */
export const WATCHED = 3_000_000;

type More = Omit<Step, 'actor' | 'object' | 'method' | 'args'>;

/** `lock:lk` */
function object(spec: string): JvmObject {
  const [kind = '', ...name] = spec.split(':');
  return { kind, name: name.join(':') };
}

export function step(
  actor: string,
  on: string | JvmObject,
  method: string,
  args: unknown[] = [],
  more: More = {},
): Step {
  return { actor, object: typeof on === 'string' ? object(on) : on, method, args, ...more };
}

/** Lets time pass. */
export const pass = (forMs: number, more: More = {}): Step => step('', '', 'pass', [forMs], more);
