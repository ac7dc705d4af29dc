/*
 * The one port through which the mechanisms of a client report what happened. Each method counts, emits an event, and
 * publishes to a channel. An event or a message is built only if it has a listener or a subscriber. Listeners and
 * subscribers run when the change is complete (after-change.ts).
 */
import type { Channel } from 'node:diagnostics_channel';
import { afterChange } from '../after-change.js';
import type { Clock, LeaseClock } from '../clock.js';
import { LockAbortedError, LockTimeoutError, type LockLostError } from '../errors.js';
import type { EventSource, LockEvents, LockKind, LockMode, MissOutcome } from '../events.js';
import * as channels from './channels.js';
import { Counters } from './stats.js';

/** The name of a lock or synchronizer, and the group of the handle that made the call. */
export interface Named {
  readonly name: string;
  readonly group: string | undefined;
}

/** A lock or synchronizer, as reports name it. */
export interface Subject extends Named {
  readonly kind: LockKind;
  /** Whether several callers can hold it at the same time. */
  readonly concurrent: boolean;
}

/** An acquisition. `askedAt`: monotonic time, in ms, of its call. */
interface Asked {
  readonly askedAt: number;
}

/** Receives the outcome of an acquisition, once. */
interface Settle<H> {
  granted(hold: H): void;
  failed(error: unknown): void;
}

const lockOf = ({ name: lockName, group }: Named): { lockName: string; group: string | undefined } => ({
  lockName,
  group,
});

export const modeOf = ({ concurrent }: Subject): LockMode => (concurrent ? 'shared' : 'exclusive');

export const missOf = (error: unknown): MissOutcome =>
  error instanceof LockTimeoutError ? 'busy' : error instanceof LockAbortedError ? 'aborted' : 'failed';

const publish = (channel: Channel, message: object): void => afterChange(() => channel.publish(message));

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

  /** An acquisition begins. Reports how it fails; the grant is reported by `acquired`, before the caller gets it. */
  acquiring<H>(subject: Subject, call: Asked, settle: Settle<H>): Settle<H> {
    this.counters.waiting += 1;
    return new ReportedSettle(this, subject, call, settle);
  }

  /** A call that `acquiring` reported has its outcome. */
  settled(): void {
    this.counters.waiting -= 1;
  }

  waiting({ name: lockName, group }: Named, waiters: number): void {
    this.counters.waits += 1;
    if (this.events.heard('waiting')) this.events.emit('waiting', { lockName, group, waiters });
  }

  /** A caller gets a hold. The hold may already be lost. `askedAt`: monotonic time, in ms, of the call. */
  acquired(subject: Subject, owner: string, holdCount: number, handedOff: boolean, askedAt: number): void {
    const { counters, events } = this;
    const { name: lockName, group, kind } = subject;
    counters.ended(kind, 'granted');
    if (handedOff) counters.handOvers += 1;
    if (!events.heard('acquired')) return;
    const waited = this.now() - askedAt;
    events.emit('acquired', { lockName, group, kind, mode: modeOf(subject), owner, holdCount, handedOff, waited });
  }

  notAcquired(subject: Subject, askedAt: number, cause: unknown): void {
    const { name: lockName, group, kind } = subject;
    const outcome = missOf(cause);
    this.counters.ended(kind, outcome);
    if (!this.events.heard('notAcquired')) return;
    const waited = this.now() - askedAt;
    this.events.emit('notAcquired', { lockName, group, kind, mode: modeOf(subject), outcome, waited, cause });
  }

  /** `openedAt`: time of the grant by this lease clock, in ms. */
  released(subject: Subject, owner: string, holdCount: number, openedAt: number, clock: LeaseClock): void {
    if (!this.events.heard('released')) return;
    const { name: lockName, group, kind } = subject;
    const held = clock.now() - openedAt;
    this.events.emit('released', { lockName, group, kind, mode: modeOf(subject), owner, holdCount, held });
  }

  lost(subject: Subject, owner: string, held: number, error: LockLostError): void {
    const { name, group, kind } = subject;
    const { reason, cause } = error;
    const mode = modeOf(subject);
    this.counters.losses += 1;
    this.events.emit('leaseLost', { lockName: name, group, kind, mode, owner, reason, held, cause });
    if (!channels.leaseLost.hasSubscribers) return;
    const message: channels.LeaseLostMessage = { ...this.#named(subject), owner, reason, held, error };
    publish(channels.leaseLost, message);
  }

  renewed(subject: Subject, owner: string, remaining: number): void {
    this.counters.renewals += 1;
    if (this.events.heard('renewed')) this.events.emit('renewed', { ...lockOf(subject), owner, remaining });
    if (!channels.leaseRenewed.hasSubscribers) return;
    const message: channels.LeaseRenewedMessage = { ...this.#named(subject), owner, remaining };
    publish(channels.leaseRenewed, message);
  }

  renewFailed(subject: Subject, owner: string, error: unknown): void {
    this.counters.renewalFailures += 1;
    this.events.emit('renewFailed', { ...lockOf(subject), owner, cause: error });
    if (!channels.renewFailed.hasSubscribers) return;
    const message: channels.RenewFailedMessage = { ...this.#named(subject), owner, error };
    publish(channels.renewFailed, message);
  }

  releaseFailed({ name: lockName, group }: Named, owner: string, cause: unknown): void {
    this.events.emit('releaseFailed', { lockName, group, owner, cause });
  }

  forceUnlocked(event: LockEvents['forceUnlocked']): void {
    this.events.emit('forceUnlocked', event);
    if (!channels.forceUnlocked.hasSubscribers) return;
    const { lockName: name, group, owner, by, address, result, cause } = event;
    const { clientId } = this;
    const message: channels.ForceUnlockedMessage = { name, group, clientId, owner, by, address, result };
    publish(channels.forceUnlocked, cause === undefined ? message : { ...message, error: cause });
  }

  connectionError(connection: 'command' | 'subscriber', error: unknown): void {
    this.counters.connectionErrors += 1;
    this.events.emit('connectionError', { connection, cause: error });
    if (!channels.connectionError.hasSubscribers) return;
    const message: channels.ConnectionErrorMessage = { clientId: this.clientId, connection, error };
    publish(channels.connectionError, message);
  }

  clockUnavailable(cause: unknown): void {
    this.events.emit('clockUnavailable', { cause });
  }

  permitsAcquired(
    { name: lockName, group, kind }: Subject,
    permits: number,
    handedOff: boolean,
    askedAt: number,
  ): void {
    this.counters.ended(kind, 'granted');
    if (handedOff) this.counters.handOvers += 1;
    if (!this.events.heard('permitsAcquired')) return;
    this.events.emit('permitsAcquired', { lockName, group, kind, permits, handedOff, waited: this.now() - askedAt });
  }

  permitsReleased({ name: lockName, group, kind }: Subject, permits: number): void {
    if (permits === 0 || !this.events.heard('permitsReleased')) return;
    this.events.emit('permitsReleased', { lockName, group, kind, permits });
  }

  latchPassed({ name: lockName, group, kind }: Subject, askedAt: number): void {
    this.counters.ended(kind, 'granted');
    if (this.events.heard('latchPassed'))
      this.events.emit('latchPassed', { lockName, group, waited: this.now() - askedAt });
  }

  latchCountedDown({ name: lockName, group }: Subject): void {
    if (this.events.heard('latchCountedDown')) this.events.emit('latchCountedDown', { lockName, group });
  }

  #named(subject: Subject): Pick<channels.LeaseLostMessage, 'name' | 'group' | 'kind' | 'mode' | 'clientId'> {
    const { name, group, kind } = subject;
    return { name, group, kind, mode: modeOf(subject), clientId: this.clientId };
  }
}

class ReportedSettle<H> implements Settle<H> {
  constructor(
    private readonly reports: Reports,
    private readonly subject: Subject,
    private readonly call: Asked,
    private readonly settle: Settle<H>,
  ) {}

  granted(hold: H): void {
    this.reports.settled();
    this.settle.granted(hold);
  }

  failed(error: unknown): void {
    this.reports.settled();
    this.reports.notAcquired(this.subject, this.call.askedAt, error);
    this.settle.failed(error);
  }
}
