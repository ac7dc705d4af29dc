/*
 * The messages that the package publishes through node:diagnostics_channel, for monitoring agents. The tracing channels
 * are below, the other channels in the table of facts (events.ts). The names and fields follow Node's own channels of Web
 * Locks (`name`, `mode`), and those of ioredis and undici (`<package>:<subject>:<fact>`). The messages contain no argument
 * of a command and no address of a server: both may contain credentials.
 */
import { tracingChannel } from 'node:diagnostics_channel';
import type { LossReason } from '../errors.js';
import type { LockKind, LockMode, MissOutcome } from '../events.js';

/** A lock or synchronizer, as the channels name it. */
interface Subject {
  /** The name that the caller used, without the key prefix. A lock over several locks has their names, with commas. */
  readonly name: string;
  /**
   * The group of the name, if `lockName` made it. A lock over several locks has their groups, each once, with commas.
   * `undefined`: none.
   */
  readonly group: string | undefined;
  readonly kind: LockKind;
  readonly mode: LockMode;
  /** The id of the client. A lock over locks of several clients has their ids, with commas. */
  readonly clientId: string;
}

/**
 * A message of the tracing channel `holdfast:acquire`: one acquisition, from the call to its outcome. The same object
 * passes through all of its events.
 */
export interface AcquireMessage extends Subject {
  /** The time that the call waits at most, in milliseconds. 0: the call tries once. `Infinity`: no limit. */
  readonly waitTime: number;
  /** The lease in milliseconds. `undefined`: the watchdog renews the hold, or the permits have no lease. */
  readonly leaseTime: number | undefined;
  /** Whether the caller is inside a hold of this lock. */
  readonly nested: boolean;
  /** Number of permits that the call requests; absent for a lock. */
  readonly permits?: number;
  /** Present from `asyncStart` on. */
  outcome?: 'granted' | MissOutcome;
  /** Time from the call to the outcome, in milliseconds. Present from `asyncStart` on. */
  waited?: number;
  /** Whether another owner of this client passed the lock on. Present if granted. */
  handedOff?: boolean;
  /** The owner id in Redis. Present if a lock was granted. */
  owner?: string;
  /** Number of holds of the owner. Present if a lock was granted. */
  holdCount?: number;
  /** The error of the call. Present if not granted, also for a call that resolves with `false` or `null`. */
  error?: unknown;
}

/**
 * A message of the tracing channel `holdfast:hold`: one hold, from the grant to its end. The same object passes through
 * all of its events. The body of `withLock`, `withPermits` and `withPermit` runs in the stores that are bound to
 * `start`.
 */
export interface HoldMessage extends Subject {
  /** The owner id in Redis; the permit ids with commas for permits with ids, and an empty string for other permits. */
  readonly owner: string;
  readonly holdCount: number;
  /** Number of permits; absent for a lock. */
  readonly permits?: number;
  /**
   * A subscriber of `start` may set this function. The body of `withLock` then runs through it. A monitoring agent
   * whose context is no `AsyncLocalStorage`, and which therefore cannot call `bindStore`, sets its context here.
   */
  run?: <T>(body: () => T) => T;
  /**
   * Present from `asyncStart` on. `releaseFailed`: Redis did not confirm the release, which continues in the
   * background.
   */
  end?: 'released' | 'lost' | 'closed' | 'releaseFailed';
  /** Time from the grant to the end, in milliseconds. Present from `asyncStart` on. */
  held?: number;
  /** Present if the hold was lost. */
  lostReason?: LossReason;
  /** Present if the hold was lost, or if its release failed. */
  error?: unknown;
}

/** A message of `holdfast:lease:renewed`. */
export interface LeaseRenewedMessage extends Subject {
  readonly owner: string;
  /** The lease in milliseconds, counted from when the request was sent. */
  readonly remaining: number;
}

/** A message of `holdfast:lease:renewFailed`. The lease may still be valid, and the client repeats the renewal. */
export interface RenewFailedMessage extends Subject {
  readonly owner: string;
  readonly error: unknown;
}

/** A message of `holdfast:lease:lost`. */
export interface LeaseLostMessage extends Subject {
  readonly owner: string;
  readonly reason: LossReason;
  /** Time from the grant to the loss, in milliseconds. */
  readonly held: number;
  readonly error: unknown;
}

/** A message of `holdfast:forceUnlocked`: `client.forceUnlock()` freed a lock, or did not. */
export interface ForceUnlockedMessage {
  readonly name: string;
  /** The group of the name, if `lockName` made it. */
  readonly group: string | undefined;
  readonly clientId: string;
  /** The owner that should lose the lock. */
  readonly owner: string;
  /** The user, as the options of the call name it. */
  readonly by: string | undefined;
  /** The network address of the user, as the options of the call name it. */
  readonly address: string | undefined;
  readonly result: 'freed' | 'not the owner' | 'failed';
  /** Present if the call failed. */
  readonly error?: unknown;
}

/** A message of `holdfast:connection:error`. The client reconnects automatically. */
export interface ConnectionErrorMessage {
  readonly clientId: string;
  readonly connection: 'command' | 'subscriber';
  readonly error: unknown;
}

export const acquireChannel = tracingChannel<unknown, AcquireMessage>('holdfast:acquire');
export const holdChannel = tracingChannel<unknown, HoldMessage>('holdfast:hold');
