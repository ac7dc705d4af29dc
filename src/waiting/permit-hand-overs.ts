/*
 * Hands released permits over to the next waiter of this client. Each permit has an id, so one request releases the old
 * ids and takes new ones with the lease of the waiter. The request names no waiter: the waiter that is the head when the
 * reply arrives gets the permits. A waiter whose own try is pending keeps its place so, and a waiter that has left
 * leaves the permits to the next one.
 */
import { randomBytes } from 'node:crypto';
import { NotReplicatedError, RefusedError, type LockError } from '../errors.js';
import type { LeaseClockMs } from '../clock.js';
import { latestEnd, type Compensations } from '../holding/compensations.js';
import {
  wasReleased,
  type PermitExpirableSemaphoreProtocol,
} from '../protocols/permit-expirable-semaphore-protocol.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply } from '../redis/scripts/replies.js';
import type { GrantServices } from './grants.js';
import { HandOffStreak } from './hand-overs/hand-off-streak.js';
import type { LocalLine } from './line.js';
import type { RetrySchedule } from './retry-schedule.js';
import { SharedWaiter, type TakenPermits } from './shared-waiter.js';
import type { WakeUps } from './wake-ups.js';

/** New permit ids: 32 hex digits each. */
export const newPermitIds = (permits: number): string[] =>
  Array.from({ length: permits }, () => randomBytes(16).toString('hex'));

/**
 * What became of permits that were to be released:
 * - `released`, or `not released`: some of them were not taken.
 * - `not sent`: the permits are as before, and have to be released in Redis.
 * - `failed`: the outcome is unknown, and `ids` have to be released in the background.
 */
export type PermitHandOver =
  | { readonly kind: 'released' | 'not released' | 'not sent' }
  | { readonly kind: 'failed'; readonly error: LockError; readonly ids: readonly string[] };

/** Released permits. */
export interface ReleasedPermits {
  readonly ids: readonly string[];
  /** Until when no other caller can have acquired them. */
  readonly deadline: LeaseClockMs;
  readonly protocol: PermitExpirableSemaphoreProtocol;
  /** Reports the release. Listeners must get that report before the next `acquired` event. */
  released(): void;
}

/** The number of permits, and their lease, for which the request was sent. */
type Terms = Pick<SharedWaiter, 'permits' | 'leaseMs'>;

const isFor = (waiter: SharedWaiter, { permits, leaseMs }: Terms): boolean =>
  waiter.permits === permits && waiter.leaseMs === leaseMs;

export class PermitHandOvers {
  readonly #streak: HandOffStreak;
  #pending = 0;

  constructor(
    private readonly services: Pick<GrantServices, 'clock' | 'options'> & { readonly compensations: Compensations },
    private readonly line: LocalLine,
    private readonly schedule: RetrySchedule,
    private readonly wakeUps: WakeUps,
    /** Its `changed()` is called when a reply has arrived. */
    private readonly host: { changed(): void },
  ) {
    this.#streak = new HandOffStreak(services.options.handOff, services.clock);
  }

  get isPending(): boolean {
    return this.#pending > 0;
  }

  /** The lease of the new permits counts from the first attempt, because a repeat writes nothing. */
  async handOff(permits: ReleasedPermits): Promise<PermitHandOver> {
    const terms = this.#termsFor(permits.ids.length);
    this.#streak.start();
    if (terms === undefined || !this.#streak.withinHardLimit()) {
      this.#streak.reset();
      return { kind: 'not sent' };
    }
    const { clock } = this.services;
    const ids = newPermitIds(terms.permits);
    const jumped = clock.jumpedByNow();
    const ours = this.#streak.pastFairShare() ? Number(this.wakeUps.isConfirmed) : 'not counted';
    this.#streak.count();
    this.#pending += 1;
    const request = await permits.protocol.handOff(permits.ids, ids, terms.leaseMs, ours).done;
    this.#pending -= 1;
    const { error, reply, doubt } = request;
    const handOver = this.#handOverBy(permits, ids, error, reply, doubt !== undefined);
    if (handOver.kind === 'released') permits.released();
    if (reply === 'released') this.schedule.yield();
    if (reply !== 'handed') this.#streak.reset();
    const taken = { ids, sentAt: clock.at(request.firstSentAt, jumped) };
    const isTaken = reply === 'handed' || error instanceof NotReplicatedError;
    if (isTaken && !(error === undefined && this.#give(taken, terms))) this.#takeBack(permits.protocol, ids, terms);
    this.host.changed();
    return handOver;
  }

  #handOverBy(
    { ids, deadline }: ReleasedPermits,
    next: readonly string[],
    error: LockError | undefined,
    reply: 'handed' | 'released' | 'mixed' | 'unknown' | undefined,
    isDoubtful: boolean,
  ): PermitHandOver {
    if (error instanceof NotReplicatedError) return { kind: 'released' };
    // Redis has refused the request before it changed anything, for example at maxmemory.
    if (error instanceof RefusedError && !isDoubtful) return { kind: 'not sent' };
    if (error !== undefined) return { kind: 'failed', error, ids: [...ids, ...next] };
    if (reply === 'handed' || reply === 'released') return { kind: 'released' };
    return { kind: wasReleased(reply, isDoubtful, deadline, this.services.clock.now()) ? 'released' : 'not released' };
  }

  /**
   * The terms of the waiter that gets the permits of the next request. The waiters before it get those of the pending
   * requests, so all of them have to want the same.
   */
  #termsFor(released: number): Terms | undefined {
    let before = this.#pending;
    let first: SharedWaiter | undefined;
    for (const waiter of this.line) {
      if (!(waiter instanceof SharedWaiter) || waiter.takeOver === undefined) return undefined;
      first ??= waiter;
      if (waiter.permits > released || !isFor(waiter, first)) return undefined;
      if (before === 0) return first;
      before -= 1;
    }
    return undefined;
  }

  /** Gives permits to the head. Returns `false` if the head does not want them, or if their lease has ended. */
  #give(taken: TakenPermits, terms: Terms): boolean {
    const { head } = this.line;
    if (!(head instanceof SharedWaiter) || head.takeOver === undefined || !isFor(head, terms)) return false;
    if (this.services.clock.now() >= taken.sentAt + (terms.leaseMs ?? Infinity)) return false;
    this.line.remove(head);
    head.takeOver(taken);
    return true;
  }

  /** Gives the head what a try acquired for a waiter that had been granted meanwhile. */
  giveSurplus(waiter: SharedWaiter, request: ScriptRequest<AcquireReply>): boolean {
    const taken = waiter.takenBy?.(request);
    return taken !== undefined && this.#give(taken, waiter);
  }

  #takeBack(protocol: PermitExpirableSemaphoreProtocol, ids: readonly string[], { leaseMs }: Terms): void {
    const until = latestEnd(this.services, leaseMs ?? Infinity);
    const takenBack = this.services.compensations.add({
      send: () => protocol.release(ids, 'any'),
      notBefore: 0,
      until,
    });
    void takenBack.then(() => this.schedule.wake());
  }
}
