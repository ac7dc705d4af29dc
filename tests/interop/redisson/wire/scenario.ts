import type { Reason } from '../../../support/java/deviation-reasons.js';
import type { JvmObject } from '../jvm.js';

/** What both kinds are told to do at the same time, on keys of their own, and how it is compared afterwards. */
export interface Step {
  /** `A.1`: client A, thread 1. */
  readonly actor: string;
  /** Names are relative to the keys of the kind. */
  readonly object: JvmObject;
  readonly method: string;
  /** As in Java; `$p` is what the step with `as: 'p'` has answered. */
  readonly args: readonly unknown[];
  readonly as?: string;
  /** The call is to wait; the step ends when it does. */
  readonly waits?: true;
  /** Actors whose waiting calls end with this step. */
  readonly wakes?: readonly string[];
  readonly differs?: readonly Difference[];
}

/** Where we do something else on purpose: what each of the two is to do. */
export interface Difference {
  readonly why: Reason;
  /** Result, or `ERR_...` and the Java class. */
  readonly result?: readonly [theirs: unknown, ours: unknown];
  readonly woken?: readonly [theirs: unknown, ours: unknown];
  readonly published?: readonly [theirs: readonly string[], ours: readonly string[]];
  /** ms that each key has left, within half a second of what has passed since. */
  readonly ttl?: Readonly<Record<string, readonly [theirs: number, ours: number]>>;
  /** Of a sorted set: by how many ms our score of each member is later. */
  readonly scores?: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Keys whose time to live, or whose times in values, each of them has for itself. */
  readonly ownTimes?: readonly string[];
  /** Keys that only one of them has. */
  readonly onlyTheirs?: readonly string[];
  readonly onlyOurs?: readonly string[];
  /** It shows or it does not: who is first is chance. */
  readonly orNone?: true;
  /** Only in these versions of Redisson. */
  readonly in?: readonly string[];
}

export interface Scenario {
  readonly name: string;
  readonly steps: readonly Step[];
  /** Versions that have what it is about; absent: all. */
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
