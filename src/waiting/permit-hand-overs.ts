/*
 * Hands released permits over to the next waiters of this client. Each permit has an id, so a request exchanges the old
 * ids for new ones with the lease of the waiter. All releases of one turn of the event loop share a request. The request
 * names no waiter: the waiter that is the head when the reply arrives gets the permits. So a waiter whose own try is pending
 * may get them, and if a waiter has left, the next one gets them.
 * tests/verification/model/PermitExchange.tla is the model of this file and of its script.
 */
import { randomUUID } from 'node:crypto';
import { NotReplicatedError, RefusedError, type LockError } from '../errors.js';
import type { LeaseClockMs } from '../clock.js';
import { latestEnd, type Compensations } from '../holding/compensations.js';
import { runOutside } from '../ownership/flow.js';
import {
  wasReleased,
  type Exchange,
  type PermitExpirableSemaphoreProtocol,
} from '../protocols/permit-expirable-semaphore-protocol.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { HandOffReply } from '../redis/scripts/permit-expirable-semaphore.js';
import type { AcquireReply } from '../redis/scripts/replies.js';
import type { GrantServices } from './grants.js';
import { HandOffStreak } from './hand-overs/hand-off-streak.js';
import type { LocalLine } from './line.js';
import type { RetrySchedule } from './retry-schedule.js';
import { SharedWaiter, type TakenPermits } from './shared-waiter.js';
import type { WakeUps } from './wake-ups.js';

/** New permit ids: 32 hex digits each. */
export const newPermitIds = (permits: number): string[] =>
  Array.from({ length: permits }, () => randomUUID().replaceAll('-', ''));

/** Ids in one request at most: the server does nothing else while the script runs. One exchange may have more. */
const MAX_IDS = 1_000;

/**
 * The outcome of a release of permits:
 * - `released`.
 * - `not released`: some of the permits were not taken.
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

const isFor = (waiter: Terms, { permits, leaseMs }: Terms): boolean =>
  waiter.permits === permits && waiter.leaseMs === leaseMs;

/** A release, and the ids that the next waiter gets. */
interface HandedPermits extends Exchange {
  readonly permits: ReleasedPermits;
  settle(handOver: PermitHandOver): void;
}

/** The exchanges of one request. All of them release the same number of permits for the same terms. */
interface Batch {
  readonly protocol: PermitExpirableSemaphoreProtocol;
  readonly terms: Terms;
  readonly released: number;
  readonly exchanges: HandedPermits[];
  /** One of the exchanges may only follow if no other client waits. */
  asks: boolean;
}

/** The reply to the request of a batch. */
interface Answer {
  readonly error: LockError | undefined;
  readonly isDoubtful: boolean;
  /** The lease of the new permits counts from this moment. */
  readonly sentAt: LeaseClockMs;
}

export class PermitHandOvers {
  readonly #streak: HandOffStreak;
  /** Exchanges without a reply. */
  #pending = 0;
  /** The exchanges of this turn of the event loop. */
  #batch: Batch | undefined;

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

  /** Releases permits, and gives the next waiter new ones. */
  async handOff(permits: ReleasedPermits): Promise<PermitHandOver> {
    const { ids } = permits;
    const terms = this.#termsFor(ids.length);
    this.#streak.start();
    if (terms === undefined || !this.#streak.withinHardLimit()) {
      this.#streak.reset();
      return { kind: 'not sent' };
    }
    const batch = this.#batchFor(permits, terms);
    if (this.#streak.pastFairShare()) batch.asks = true;
    this.#streak.count();
    this.#pending += 1;
    return new Promise((settle) => {
      batch.exchanges.push({ permits, ids, next: newPermitIds(terms.permits), settle });
    });
  }

  #batchFor({ ids, protocol }: ReleasedPermits, terms: Terms): Batch {
    const released = ids.length;
    const open = this.#batch;
    const isFull = open !== undefined && (open.exchanges.length + 1) * (released + terms.permits) > MAX_IDS;
    if (open !== undefined && !isFull && open.released === released && isFor(open.terms, terms)) return open;
    const batch: Batch = { protocol, terms, released, exchanges: [], asks: false };
    this.#batch = batch;
    // Timers that fire together run before `setImmediate`. The request serves several callers, so it runs outside the
    // flow of each caller.
    runOutside(() => setImmediate(() => void this.#send(batch)));
    return batch;
  }

  async #send(batch: Batch): Promise<void> {
    if (this.#batch === batch) this.#batch = undefined;
    const { protocol, terms, exchanges, asks } = batch;
    const { clock } = this.services;
    const jumped = clock.jumpedByNow();
    const ours = asks ? Number(this.wakeUps.isConfirmed) : 'not counted';
    const request = await protocol.handOff(exchanges, terms.leaseMs, ours).done;
    this.#pending -= exchanges.length;
    const { error, reply, doubt } = request;
    // The lease counts from the first attempt, because a repeat writes nothing.
    const sentAt = clock.at(request.firstSentAt, jumped);
    const answer = { error, isDoubtful: doubt !== undefined, sentAt };
    if (reply?.includes('released') === true) this.schedule.yield();
    if (reply?.every((each) => each === 'handed') !== true) this.#streak.reset();
    exchanges.forEach((exchange, i) => this.#settle(batch, exchange, answer, reply?.[i]));
    this.host.changed();
  }

  #settle({ protocol, terms }: Batch, exchange: HandedPermits, answer: Answer, reply: HandOffReply | undefined): void {
    const { permits, next, settle } = exchange;
    const { error, sentAt } = answer;
    const handOver = this.#handOverBy(exchange, answer, reply);
    if (handOver.kind === 'released') permits.released();
    const isTaken = reply === 'handed' || error instanceof NotReplicatedError;
    if (isTaken && !(error === undefined && this.#give({ ids: next, sentAt }, terms)))
      this.#takeBack(protocol, next, terms);
    settle(handOver);
  }

  #handOverBy(
    { permits: { ids, deadline }, next }: HandedPermits,
    { error, isDoubtful }: Answer,
    reply: HandOffReply | undefined,
  ): PermitHandOver {
    if (error instanceof NotReplicatedError) return { kind: 'released' };
    // Redis has refused the request before it changed anything, for example at maxmemory.
    if (error instanceof RefusedError && !isDoubtful) return { kind: 'not sent' };
    if (error !== undefined) return { kind: 'failed', error, ids: [...ids, ...next] };
    if (reply === 'handed' || reply === 'released') return { kind: 'released' };
    return { kind: wasReleased(reply, isDoubtful, deadline, this.services.clock.now()) ? 'released' : 'not released' };
  }

  /**
   * Returns the terms of the waiter that gets the permits of the next exchange. Each waiter before it gets the permits of
   * one pending exchange. Any of them may leave, so all have to ask for the same number of permits and the same lease.
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
