/*
 * The one port through which the mechanisms of a client report what happened. The table of facts (events.ts) says what
 * each report counts, and which channel publishes it. An event or a message is built only if it has a listener or a
 * subscriber. Listeners and subscribers run when the change is complete (after-change.ts).
 */
import type { Channel } from 'node:diagnostics_channel';
import { afterChange } from '../after-change.js';
import type { Clock, LeaseClock } from '../clock.js';
import { LockAbortedError, LockTimeoutError } from '../errors.js';
import {
  FACTS,
  type EventSource,
  type LockEvents,
  type MissOutcome,
  type ReportedLock,
  type ReportedName,
} from '../events.js';
import type { HoldMessage } from './channels.js';
import { Counters } from './stats.js';

/** An acquisition. `askedAt`: monotonic time, in ms, of its call. */
interface Asked {
  readonly askedAt: number;
}

/** Receives the outcome of an acquisition, once. */
export interface Settle<H> {
  granted(hold: H): void;
  failed(error: unknown): void;
}

/** What an event says beside its lock. */
type Details<K extends keyof LockEvents> = Omit<LockEvents[K], 'lockName' | 'group' | 'kind' | 'mode'>;

/** What a fact is about: a lock or synchronizer, a name, or the client as a whole. */
type Reported = ReportedLock | ReportedName | { readonly name?: undefined };

/** A lock or synchronizer, as the channels name it. */
export type TracedSubject = Pick<HoldMessage, 'name' | 'group' | 'kind' | 'mode' | 'clientId'>;

export const subjectOf = ({ name, group, kind, concurrent }: ReportedLock, clientId: string): TracedSubject => ({
  name,
  group,
  kind,
  mode: concurrent ? 'shared' : 'exclusive',
  clientId,
});

export const missOf = (error: unknown): MissOutcome =>
  error instanceof LockTimeoutError ? 'busy' : error instanceof LockAbortedError ? 'aborted' : 'failed';

export class Reports {
  readonly counters = new Counters();

  constructor(
    readonly clientId: string,
    private readonly clock: Clock,
    readonly events: EventSource,
  ) {}

  /** Monotonic time, in ms. */
  now(): number {
    return this.clock.monotonic();
  }

  /**
   * Counts a fact, emits its event, and publishes its message. `lock`: what the fact is about. `error`: the error of the
   * message, if that is not the cause.
   */
  report<K extends keyof LockEvents>(type: K, lock: Reported, details: Details<K>, error?: unknown): void {
    const [about, , , channel, counter] = FACTS[type];
    if (counter !== undefined) this.counters[counter] += 1;
    if (this.events.hasListener(type))
      this.events.emit(type, { ...about(lock as ReportedLock), ...details } as LockEvents[K]);
    if (channel?.hasSubscribers === true) this.#publish(channel, lock, details, error);
  }

  /** An acquisition begins. Reports how it fails; the grant is reported by `acquired`, before the caller gets it. */
  acquiring<H>(lock: ReportedLock, call: Asked, settle: Settle<H>): Settle<H> {
    this.counters.waiting += 1;
    return new ReportedSettle(this, lock, call, settle);
  }

  waiting(lock: ReportedName, waiters: number): void {
    this.report('waiting', lock, { waiters });
  }

  /** A caller gets a hold. The hold may already be lost. `askedAt`: monotonic time, in ms, of the call. */
  acquired(lock: ReportedLock, owner: string, holdCount: number, handedOff: boolean, askedAt: number): void {
    this.counters.ended(lock.kind, 'granted');
    if (handedOff) this.counters.handOvers += 1;
    if (!this.events.hasListener('acquired')) return;
    this.#emit('acquired', lock, { owner, holdCount, handedOff, waited: this.now() - askedAt });
  }

  notAcquired(lock: ReportedLock, askedAt: number, cause: unknown): void {
    const outcome = missOf(cause);
    this.counters.ended(lock.kind, outcome);
    if (!this.events.hasListener('notAcquired')) return;
    this.#emit('notAcquired', lock, { outcome, waited: this.now() - askedAt, cause });
  }

  /** `openedAt`: time of the grant by this lease clock, in ms. */
  released(lock: ReportedLock, owner: string, holdCount: number, openedAt: number, clock: LeaseClock): void {
    if (!this.events.hasListener('released')) return;
    this.#emit('released', lock, { owner, holdCount, held: clock.now() - openedAt });
  }

  permitsAcquired(lock: ReportedLock, permits: number, handedOff: boolean, askedAt: number): void {
    this.counters.ended(lock.kind, 'granted');
    if (handedOff) this.counters.handOvers += 1;
    if (!this.events.hasListener('permitsAcquired')) return;
    this.#emit('permitsAcquired', lock, { permits, handedOff, waited: this.now() - askedAt });
  }

  permitsReleased(lock: ReportedLock, permits: number): void {
    if (permits > 0) this.report('permitsReleased', lock, { permits });
  }

  latchPassed(lock: ReportedLock, askedAt: number): void {
    this.counters.ended(lock.kind, 'granted');
    this.report('latchPassed', lock, { waited: this.now() - askedAt });
  }

  #publish(channel: Channel, lock: Reported, { cause, ...details }: { readonly cause?: unknown }, error = cause): void {
    const { clientId } = this;
    const subject = 'kind' in lock ? subjectOf(lock, clientId) : { ...lock, clientId };
    afterChange(() => channel.publish({ ...subject, ...details, ...(error === undefined ? undefined : { error }) }));
  }

  #emit<K extends keyof LockEvents>(type: K, lock: Reported, details: Details<K>): void {
    this.events.emit(type, { ...FACTS[type][0](lock as ReportedLock), ...details } as LockEvents[K]);
  }
}

class ReportedSettle<H> implements Settle<H> {
  constructor(
    private readonly reports: Reports,
    private readonly lock: ReportedLock,
    private readonly call: Asked,
    private readonly settle: Settle<H>,
  ) {}

  granted(hold: H): void {
    this.reports.counters.waiting -= 1;
    this.settle.granted(hold);
  }

  failed(error: unknown): void {
    this.reports.counters.waiting -= 1;
    this.reports.notAcquired(this.lock, this.call.askedAt, error);
    this.settle.failed(error);
  }
}
