/*
 * Grants and hand-overs of locks. The waiter whose try succeeded gets the lock, or a tenure that ends hands it over to its
 * successor. If the waiter has left before its grant, the lock goes on to the next one. A message grants nothing, because
 * all databases of a server share its channels. shared-grants.ts grants permits and latches.
 */
import { ClientClosedError, NotReplicatedError, type LockError } from '../errors.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { HandOffReply } from '../redis/scripts/replies.js';
import type { OwnSubscribers } from '../redis/scripts/script.js';
import type { LeaseClock, LeaseClockMs } from '../clock.js';
import { latestEnd, releaseGoesOn, type Compensations } from '../holding/compensations.js';
import type { WakeUps } from './wake-ups.js';
import { HandOffStreak } from './hand-overs/hand-off-streak.js';
import type { FollowingCall, KeptLocks, KeptTimes } from './hand-overs/kept-locks.js';
import { extraLeaseMs, FOLLOWED, type LocalHandOvers } from './hand-overs/local-hand-over.js';
import { grantDeadline } from '../holding/hold-record.js';
import { serves, type ServingClient } from '../holding/innermost-hold.js';
import { LightSet } from '../light-set.js';
import type { LocalLine } from './line.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import type { ResolvedOptions } from '../options.js';
import type { RetrySchedule } from './retry-schedule.js';
import { failedEnd, type TenureEnd } from '../holding/tenure-end.js';
import { tellAcquired } from '../holding/tenure-events.js';
import type { Ended, TenureHost } from '../holding/tenure-host.js';
import { Tenure } from '../holding/tenure.js';
import { YIELD_AFTER_MESSAGE_MS } from '../timing.js';
import type { QueuedTurn } from './fair-places.js';
import { LockWaiter, type Grant } from './lock-waiter.js';
import type { Try } from './waiter.js';

/** The services that the grants of one client share. */
export interface GrantServices extends ServingClient {
  readonly clock: LeaseClock;
  readonly options: { readonly commandTimeout: number; readonly handOff: ResolvedOptions['handOff'] };
  readonly compensations: Compensations;
  readonly localHandOvers: LocalHandOvers;
  readonly kept: KeptLocks<LockWaiter>;
  newOwner(): string;
}

/** The line that the grants are for. */
export interface GrantingLine {
  /** A tenure of this client no longer has the lock. */
  changed(): void;
  /** The other line of this lock, if it has one. Readers and writers wait in two lines. */
  beside(protocol: LockProtocol): { readonly waiterCount: number; readonly holders: Iterable<Tenure> } | undefined;
}

export class Grants implements TenureHost<Tenure>, QueuedTurn {
  /** Waiters with a pending hand-over. */
  readonly successors = new LightSet<LockWaiter>();
  readonly #streak: HandOffStreak;

  constructor(
    private readonly services: GrantServices,
    private readonly host: GrantingLine,
    private readonly line: LocalLine,
    private readonly schedule: RetrySchedule,
    private readonly wakeUps: WakeUps,
    /** Whether the waiters of this line can hold the lock at the same time. */
    private readonly concurrent: boolean,
  ) {
    this.#streak = new HandOffStreak(services.options.handOff, services.clock);
  }

  /**
   * Grants the lock if the try acquired it, and if its lease has not ended. Returns `true` also when the lock goes on to
   * another waiter, because this one has left.
   */
  grantIfTaken(waiter: LockWaiter, { request, jumped }: Try): boolean {
    const { clock } = this.services;
    const { reply } = request;
    const sentAt = clock.at(request.sentAt, jumped);
    const now = clock.now();
    if (reply?.kind !== 'granted' || now >= grantDeadline(sentAt, waiter.terms.leaseMs)) return false;
    this.#streak.reset();
    this.grant({ waiter, request, reply, sentAt, jumped, now });
    return true;
  }

  /**
   * Creates the tenure of the waiter's owner, which has the lock now. If the waiter no longer wants the lock, the
   * tenure ends and the lock goes on to the next waiter.
   */
  grant({ waiter, request, before, reply, sentAt, jumped, now }: Grant): void {
    const { protocol, owner, terms } = waiter;
    const { clock, localHandOvers, tenures } = this.services;
    const doubtUntil = request === undefined ? 0 : waiter.doubtUntil(request.doubt);
    const tenure = new Tenure(tenures, this, protocol, owner, doubtUntil, jumped, reply.kind === 'handed');
    tenure.lease.recordLease(waiter.requestedMs, clock.monotonicAt(now));
    tenure.confirmation = before?.confirmation ?? localHandOvers.confirmationOf(waiter, sentAt, jumped);
    waiter.leftQueue();
    this.line.remove(waiter);
    // After the removal: a kept lock that is released now must not be handed over to this waiter.
    if (before === undefined) this.#endStreaks(protocol);
    this.line.addHolder(tenure);
    this.schedule.granted();
    // A granted reader lets all other readers of the line try at once.
    this.schedule.next = this.concurrent ? 'all' : 'head';
    // A waiter that has left the line is not among those that close() rejects.
    if (!serves(this.services, waiter)) waiter.settleLater(new ClientClosedError());
    if (!waiter.wantsGrant) {
      tenure.releaseUnclaimed(terms.leaseMs);
      waiter.addDoubt(request?.doubt);
      waiter.reject(waiter.reason as LockError);
      return;
    }
    const record = tenure.open(terms, sentAt, now);
    record.token = tenure.token = reply.token;
    tellAcquired(tenure, record, terms.askedAt);
    // A forced unlock named this owner meanwhile. It may have run between two attempts: the second created the field.
    if (waiter.forced === waiter.owner) tenure.force(true);
    waiter.resolve(tenure, record);
  }

  /** Returns the waiter that gets the lock when a tenure ends. `leaseEnd`: when the current lease of the key ends. */
  successorFor(leaseEnd: LeaseClockMs): LockWaiter | undefined {
    const head = this.line.queue === undefined ? this.line.head : this.line.queue.next;
    if (!(head instanceof LockWaiter) || head.isBusy || !head.protocol.handsOff) return undefined;
    // Other clients sleep until the lease end that they know. If this process died, a successor's shorter lease would
    // end before that, and no message would wake those clients.
    if (this.services.clock.now() + head.terms.leaseMs < leaseEnd) return undefined;
    return this.#streak.withinHardLimit() ? head : undefined;
  }

  /**
   * Hands the lock over to the successor in one script. The successor's lease counts from the first attempt, because a
   * repeat writes nothing. `released` reports the release of the hold before. Listeners must get that report before the
   * next `acquired` event.
   *
   * - `handed` in time: the successor gets the lock.
   * - In every other case the successor stays in line with a new owner id, because an attempt may still write the old
   *   one to Redis. `#notHanded()` names these outcomes. In a Redis queue the successor keeps its owner id and its place.
   */
  async handOff(tenure: Tenure, waiter: LockWaiter, released: () => void, othersFirst: boolean): Promise<TenureEnd> {
    const { clock } = this.services;
    this.#streak.start();
    if (this.#mayFollow(tenure, waiter) && (await this.#followLocally(tenure, waiter, released)))
      return { kind: 'handed' };
    const ours = othersFirst || this.#streak.pastFairShare() ? this.#ownSubscribers(waiter.protocol) : 'not counted';
    waiter.receive();
    // A waiter in a Redis queue has a line of its own. It may leave the queue before the reply.
    const turn = this.line.queue?.turnOf(waiter);
    const { successors } = turn ?? this;
    successors.add(waiter);
    const { jumped } = clock;
    const sent = waiter.protocol.handOff(tenure.owner, waiter.owner, waiter.requestedMs, ours);
    tenure.lastRequest = sent;
    const request = await sent.done;
    waiter.received();
    successors.delete(waiter);
    const { reply } = request;
    const sentAt = clock.at(request.firstSentAt, jumped);
    const now = clock.now();
    if (reply?.kind !== 'handed' || now >= grantDeadline(sentAt, waiter.terms.leaseMs))
      return turn === undefined
        ? this.#notHanded(waiter, request, ours)
        : this.#notHandedInQueue(waiter, request, turn);
    this.line.removeHolder(tenure);
    this.line.settled();
    this.#streak.count();
    // From here on, sections may follow without a request again: Redis has just seen that no other client waits.
    if (ours !== 'not counted' && extraLeaseMs(this.services.options.handOff, waiter) > 0) this.#streak.noOthers();
    released();
    (turn ?? this).grant({ waiter, request, reply, sentAt, jumped, now });
    return { kind: 'handed' };
  }

  #mayFollow(tenure: Tenure, call: FollowingCall): boolean {
    return this.#streak.withinLocalLimit() && this.services.localHandOvers.mayFollow(tenure, call);
  }

  /** Gives the lock to the waiter under the owner of the tenure. Returns `false` if the rules forbid that meanwhile. */
  async #followLocally(tenure: Tenure, waiter: LockWaiter, released: () => void): Promise<boolean> {
    const unused = waiter.owner;
    // A forced unlock that names the owner means this waiter from now on.
    waiter.owner = tenure.owner;
    waiter.receive();
    this.successors.add(waiter);
    await this.services.localHandOvers.yieldToEvents();
    this.successors.delete(waiter);
    if (!this.#mayFollow(tenure, waiter)) {
      waiter.received();
      waiter.owner = unused;
      return false;
    }
    this.line.holders.delete(tenure);
    released();
    waiter.received();
    this.#grantLocally(waiter, tenure);
    return true;
  }

  #grantLocally(waiter: LockWaiter, before: Tenure): void {
    const now = this.services.clock.now();
    this.#streak.countLocal();
    this.grant({ waiter, before, reply: FOLLOWED, sentAt: now, jumped: this.services.clock.jumped, now });
  }

  keepIfAllowed(tenure: Tenure): boolean {
    this.#streak.start();
    const times = this.#keepsUntil(tenure);
    if (times === undefined) return false;
    const mayFollow = (call: FollowingCall): boolean => this.#mayFollow(tenure, call);
    const follow = (waiter: LockWaiter): void => this.#followKept(tenure, waiter);
    this.services.kept.add(tenure, times, { mayFollow, follow });
    return true;
  }

  #keepsUntil(tenure: Tenure): KeptTimes | undefined {
    const { client, localHandOvers, options } = this.services;
    if ((options.handOff?.keepMs ?? 0) === 0) return undefined;
    if (client.closed || client.draining || this.line.waiterCount > 0) return undefined;
    if (this.#waitersBeside(tenure.protocol) > 0) return undefined;
    return localHandOvers.keepsUntil(tenure, this.#streak);
  }

  #followKept(tenure: Tenure, waiter: LockWaiter): void {
    this.services.kept.ended(tenure);
    tenure.state = 'over';
    this.line.removeHolder(tenure);
    waiter.owner = tenure.owner;
    this.#grantLocally(waiter, tenure);
  }

  /** See {@link LocalHandOvers.endStreaks}. A new reader excludes writers, but not other readers. */
  #endStreaks(protocol: LockProtocol): void {
    const { kept, localHandOvers, options } = this.services;
    if ((options.handOff?.localMs ?? 0) === 0) return;
    const beside = this.host.beside(protocol);
    localHandOvers.endStreaks(kept, protocol, this.concurrent ? [beside] : [this.line, beside]);
  }

  /** Number of calls that wait in the other line of the lock. */
  #waitersBeside(protocol: LockProtocol): number {
    return this.host.beside(protocol)?.waiterCount ?? 0;
  }

  /** How many subscribers the script ignores: this client, unless its subscription or its other line needs the message. */
  #ownSubscribers(protocol: LockProtocol): OwnSubscribers {
    return this.wakeUps.isConfirmed && this.#waitersBeside(protocol) === 0 ? 1 : 0;
  }

  /**
   * The successor did not get the lock:
   *
   * - `failed`: Redis refused the request, or no attempt was answered. Either owner may have the lock.
   * - `freed`: other clients wait, so the script freed the lock.
   * - `gone`: Redis has neither owner.
   * - `handed late`: the successor's lease had ended before the reply, or the replicas did not confirm it. The old owner
   *   has left Redis, so its release succeeded. The client releases the successor's owner.
   */
  #notHanded(waiter: LockWaiter, request: ScriptRequest<HandOffReply>, ours: OwnSubscribers): TenureEnd {
    const { owner, protocol } = waiter;
    const { error, reply, doubt } = request;
    const doubtUntil = doubt?.until ?? 0;
    const leaseEnd = latestEnd(this.services, waiter.requestedMs);
    waiter.owner = this.services.newOwner();
    waiter.addDoubt(doubt);
    if (waiter.reason !== undefined) waiter.reject(waiter.reason);
    if (error !== undefined && !(error instanceof NotReplicatedError))
      return { kind: 'failed', error, alsoOwners: [owner], doubtUntil, leaseEnd };
    if (reply?.kind === 'freed') return { kind: 'freed' };
    // Only a script that counts subscribers frees the lock, so only then an earlier attempt can have removed the owner.
    // A repeat of any other finds the successor in the hash.
    if (reply?.kind === 'gone') return { kind: 'gone', doubt: ours === 'not counted' ? undefined : doubt };
    void this.services.compensations.add({
      send: () => protocol.release([owner]),
      notBefore: doubtUntil,
      until: leaseEnd,
    });
    this.schedule.wakeUpPending = true;
    return { kind: 'handed late' };
  }

  /**
   * The successor keeps its owner id and its place in the Redis queue, also if an attempt is unanswered: no late attempt
   * hands over once the client has released the old owner. If the successor may have the lock, its own try finds out.
   */
  #notHandedInQueue(waiter: LockWaiter, request: ScriptRequest<HandOffReply>, turn: QueuedTurn): TenureEnd {
    const { error, reply, doubt } = request;
    waiter.notHanded(doubt);
    if (waiter.reason !== undefined) waiter.reject(waiter.reason);
    if (reply?.kind === 'freed' || reply?.kind === 'gone') {
      turn.resume();
      return reply.kind === 'freed' ? { kind: 'freed' } : { kind: 'gone', doubt };
    }
    turn.wake();
    turn.resume();
    if (error === undefined || error instanceof NotReplicatedError) return { kind: 'handed late' };
    return { ...failedEnd(doubt === undefined ? error : releaseGoesOn(error)), doubtUntil: doubt?.until ?? 0 };
  }

  wake(): void {
    this.schedule.wake();
  }

  resume(): void {
    this.host.changed();
  }

  refreshed(unavailable?: LockError): void {
    this.line.settled(unavailable);
  }

  tenureEnded(tenure: Tenure, how: Ended): void {
    this.line.removeHolder(tenure);
    this.services.kept.ended(tenure);
    if (how !== 'handed') {
      const { hasStayed } = this.#streak;
      this.#streak.reset();
      // The pending try of the head followed this release on the same connection, so its reply describes the time after.
      const isFollowed = tenure.isLeaving && this.line.head?.isBusy === true;
      const waits = this.line.waiterCount > 0 && !isFollowed;
      if (how !== 'freed') this.schedule.wakeUpPending = true;
      // The head has waited for this reply: it gets no advantage over the other clients.
      else if (tenure.isLeaving && waits) this.schedule.wakeUpPending = true;
      // The script has published a message. Let the other clients try first: they get it a round trip later.
      else if (this.line.holders.size === 0 && !this.concurrent) {
        if (waits) this.schedule.yield();
        // Sections have followed one another here for `local` ms or so: before the next one, other clients get a chance.
        else if (hasStayed && !isFollowed) this.schedule.yield(YIELD_AFTER_MESSAGE_MS);
      }
    }
    this.host.changed();
  }
}
