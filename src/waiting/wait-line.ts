/*
 * All local waiters of one channel, and the one wait loop. In the line of an exclusive lock, only the head sends acquire
 * requests to Redis. A call that does not wait sends one try beside the line. Calls for fewer permits may try as well.
 *
 *   try -> busy: subscribe -> confirmed: try again -> busy: park
 *   The head parks until a message, the end of the holder's lease, the end of its own time limit, or its signal.
 *   While no message can arrive, the head parks for at most 1 to 2 s.
 *   Behind a hold of its own client, a head that no reply has told of that hold parks for at most 100 to 200 ms.
 *
 * A wake-up is pending until the head tries, whichever waiter is the head by then. Sending a try clears the wake-up and
 * forgets the holder's TTL. Only the reply to the newest try makes the TTL known again. No waiter parks while a wake-up
 * is pending or the TTL is unknown (retry-schedule.ts). So no wake-up is lost when a waiter leaves, or while a reply is
 * pending. tests/verification/model/Waiting.tla models both files.
 */
import type { LeaseClockMs } from '../clock.js';
import { ClientClosedError, LockTimeoutError, type LockError } from '../errors.js';
import type { ChannelSource } from '../redis/connections/channel-source.js';
import { WakeUps } from './wake-ups.js';
import { FailedTries } from './failed-tries.js';
import { FollowingTries, type FollowingServices } from './hand-overs/following-tries.js';
import { Grants, type GrantingLine, type GrantServices } from './grants.js';
import { serves, type ServingClient } from '../holding/innermost-hold.js';
import { LightSet } from '../light-set.js';
import { LocalLine, type LineServices } from './line.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import { RetrySchedule, type ProbeMs } from './retry-schedule.js';
import type { FairPlaces } from './fair-places.js';
import { SharedGrants } from './shared-grants.js';
import { SharedWaiter } from './shared-waiter.js';
import type { Tenure } from '../holding/tenure.js';
import { LockWaiter } from './lock-waiter.js';
import type { Try, Waiter } from './waiter.js';
import { OWN_HOLD_PROBE_MS, PROBE_MS } from '../timing.js';

/** The services of the client that its lines use. */
export interface WaitServices extends LineServices, GrantServices, FollowingServices, ServingClient {
  readonly options: GrantServices['options'] & { readonly lockWatchdogTimeout: number };
}

/** The registry of all lines of one client. */
export interface LineRegistry {
  /** Records whether a call waits in the line. The client checks the subscription connection only then. */
  attend(line: WaitLine, attended: boolean): void;
  /** Schedules the end of the subscription, or the removal of a line for a Redis queue, once the line is idle. */
  linger(line: WaitLine): void;
  /** The other line of this lock, if it has one. */
  beside(protocol: LockProtocol): WaitLine | undefined;
}

export class WaitLine implements GrantingLine {
  readonly #grants: Grants;
  #sharedGrants: SharedGrants | undefined;
  readonly #failures: FailedTries;
  readonly #line: LocalLine;
  readonly #schedule: RetrySchedule;
  readonly #wakeUps: WakeUps;
  /** Waiters with a pending try. */
  readonly #trying = new LightSet<Waiter>();
  /** Calls whose time is up while no reply has said whether the lock is busy. The reply to a pending try settles them. */
  readonly #undecided = new LightSet<Waiter>();
  readonly #following: FollowingTries;
  #onIdle: (() => void) | undefined;

  constructor(
    private readonly services: WaitServices,
    private readonly registry: LineRegistry,
    subscriber: ChannelSource,
    channel: string,
    /** Whether the waiters of this line can hold the lock at the same time: a holder then keeps none of them out. */
    private readonly concurrent: boolean,
    /** The queue in Redis in which the only waiter of this line has a place. `channel` then belongs to its owner. */
    readonly queue?: FairPlaces,
  ) {
    const line = new LocalLine(services, queue, this);
    const { clock, options } = services;
    this.#line = line;
    this.#following = new FollowingTries(services, line);
    this.#schedule = new RetrySchedule(clock, options.lockWatchdogTimeout, line, this);
    this.#wakeUps = new WakeUps(subscriber, channel, line, this.#schedule, this);
    this.#grants = new Grants(services, this, line, this.#schedule, this.#wakeUps, concurrent);
    this.#failures = new FailedTries(services, this, line, this.#schedule);
  }

  /** The channel that its waiters listen to. */
  get channel(): string {
    return this.#wakeUps.channel;
  }

  /** Created on first use: the line of a lock never needs it. */
  get shared(): SharedGrants {
    return (this.#sharedGrants ??= new SharedGrants(this.services, this.#line, this.#schedule, this.#wakeUps, this));
  }

  get waiterCount(): number {
    return this.#line.waiterCount;
  }

  get waiters(): Iterable<Waiter> {
    return this.#line;
  }

  get holders(): LightSet<Tenure> {
    return this.#line.holders;
  }

  get unavailable(): LockError | undefined {
    return this.#line.unavailable;
  }

  beside(protocol: LockProtocol): WaitLine | undefined {
    return this.registry.beside(protocol);
  }

  get isUnused(): boolean {
    return this.#line.waiterCount === 0 && this.holders.size === 0 && !this.hasPending;
  }

  /** Waiters with a pending try or a pending hand-over. */
  get pendingWaiters(): Waiter[] {
    return [...this.#trying, ...this.#grants.successors];
  }

  get hasPending(): boolean {
    return this.#trying.size > 0 || this.#grants.successors.size > 0 || this.#handsPermitsOver;
  }

  get #handsPermitsOver(): boolean {
    return this.#sharedGrants?.handOvers.isPending === true;
  }

  get isSubscribed(): boolean {
    return this.#wakeUps.isSubscribed;
  }

  /** Adds the waiter to the line. A call that does not wait sends one try beside the line. */
  join(waiter: Waiter): void {
    // A call may come here after close() has rejected all waiters, or begun to drain. close() does not look again.
    if (!serves(this.services, waiter)) return waiter.reject(new ClientClosedError());
    waiter.watchSignal(this);
    if (waiter instanceof SharedWaiter) waiter.cameAfter = this.#schedule.newestTry;
    if (waiter.limit.kind === 'one try') return this.#try(waiter);
    this.#line.add(waiter);
    this.step();
    if (!waiter.isBusy) this.beginWait(waiter);
  }

  /** Starts the wait: the waiter's time limit runs from now on, and listeners get the `waiting` event. */
  beginWait(waiter: Waiter): void {
    if (waiter.startWaiting()) this.#line.waitBegins(waiter, this.#grants);
  }

  /**
   * The time limit of the waiter has passed. The call fails as busy only if Redis has said so: what the client believes
   * of its own holds is no reply.
   */
  timeIsUp(waiter: Waiter): void {
    const busy = new LockTimeoutError(waiter.name, waiter.limit.waitTime);
    // A try that this call gave up would report an outage that is none, unless the client knows of one.
    const isDecided = waiter.isBusy ? this.#line.unavailable !== undefined : this.#isInformed(waiter);
    if (isDecided) return this.leave(waiter, busy);
    this.#line.remove(waiter);
    if (waiter.isBusy) waiter.settleLater(busy);
    else this.#settleByReply(waiter, busy);
    queueMicrotask(() => this.step());
    this.#scheduleRemoval();
  }

  /** The reply to a pending try settles the call. Without such a try, the call sends one. */
  #settleByReply(waiter: Waiter, busy: LockError): void {
    const { permits, creates, limit } = waiter;
    // The reply to a try for more permits would say nothing about this call, nor that to a try which creates no semaphore
    // if this call does. A signal may end a try without a reply, and then no time would be left for another one.
    const decides = (other: Waiter): boolean =>
      other.permits <= permits &&
      (other.creates || !creates) &&
      (other.limit.signal === undefined || other.limit.signal === limit.signal);
    if ([...this.#trying].some(decides)) this.#undecided.add(waiter);
    else this.#try(waiter);
    waiter.settleLater(busy);
  }

  /**
   * Whether the client knows from Redis that the lock is busy, or why it cannot know. A TTL from before the call counts
   * only if another client has the lock: the head then parks for no longer than that TTL.
   */
  #isInformed({ newsAtJoin }: Waiter): boolean {
    const { news, unavailable, holders } = this.#line;
    const { isTtlKnown, isPaused } = this.#schedule;
    return news > newsAtJoin || (isTtlKnown && holders.size === 0) || (isPaused && unavailable !== undefined);
  }

  /** Removes a waiter whose time limit has passed, whose signal has aborted, or whose line rejects all waiters. */
  leave(waiter: Waiter, reason: LockError): void {
    this.#line.remove(waiter);
    this.#undecided.delete(waiter);
    waiter.leave(reason);
    // Other waiters may leave by the same signal. Without the delay, each of them would become the head and send a try
    // just before it leaves.
    queueMicrotask(() => {
      waiter.abandonTry();
      this.step();
    });
    this.#scheduleRemoval();
  }

  lastWaiterLeft(): void {
    this.#schedule.reset();
    this.registry.attend(this, false);
  }

  /** Takes the next action of the line, if there is one. Every change of state calls this method. */
  step(): void {
    const schedule = this.#schedule;
    const { head } = this.#line;
    if (head === undefined) return;
    if (schedule.next === 'all') return this.#tryAll();
    // The reply to its try, or to the hand-over to it, causes the next step.
    if (head.isBusy || (this.#line.isPassed && !schedule.wakeUpPending)) return;
    // No reply has said yet that the lock is busy.
    if (schedule.isDue && (this.concurrent || this.#following.takeTurn(this.#line.first))) return this.#try(head);
    const now = this.services.clock.now();
    schedule.advance(now);
    // Redis is unavailable, or the other clients try first.
    if (schedule.isPaused) return schedule.wakeAfterPause();
    // The report of a loss calls step() again, and that step may send the try. So look at `isBusy` after it. Check before
    // reading the deadline.
    if (!this.concurrent) this.#line.checkHolders();
    if (head.isBusy) return;
    // A waiter that polls asks Redis, whatever the client believes of its own holds.
    const heldUntil = this.concurrent || this.#polls(head) ? 0 : this.#line.holdersDeadline(now);
    const isKnownBusy = schedule.isTtlKnown || heldUntil > 0;
    if (schedule.wakeUpPending || head.state === 'retrying' || !isKnownBusy) return this.#try(head);
    // What is too little for the head may be enough for a call behind it. A call behind it may create the semaphore.
    const passing = this.#line.passing(schedule.tooMany);
    if (passing === undefined) return this.#park(head, now, heldUntil);
    if (!passing.isBusy) this.#try(passing);
  }

  /** The head waits for a message, for the end of the lease, or for its next probe. */
  #park(head: Waiter, now: LeaseClockMs, heldUntil: LeaseClockMs): void {
    this.registry.attend(this, true);
    if (!this.isSubscribed && !this.#polls(head)) this.#wakeUps.begin();
    // The tenure of this client that has the lock causes a step when it ends.
    const probeMs = heldUntil > 0 ? this.#ownHoldProbe(head) : this.#silenceProbe();
    if (!this.#schedule.park(now, heldUntil, probeMs)) this.#try(head, true);
  }

  #polls(head: Waiter): boolean {
    return head instanceof LockWaiter && head.protocol.polls !== undefined;
  }

  /** A head that waits for a hold of its own client asks Redis once whether that hold still has the lock. */
  #ownHoldProbe(head: Waiter): ProbeMs | undefined {
    return this.#isInformed(head) ? undefined : OWN_HOLD_PROBE_MS;
  }

  /**
   * While no message can arrive, the head probes. A waiter in a Redis queue needs no probes: the reply to its regular
   * refresh says when to try. A kind that polls is not subscribed, and tries anyway.
   */
  #silenceProbe(): ProbeMs | undefined {
    return this.isSubscribed && this.queue === undefined && !this.#wakeUps.isConfirmed ? PROBE_MS : undefined;
  }

  #tryAll(): void {
    for (const waiter of [...this.#line]) if (!waiter.isBusy) this.#try(waiter);
  }

  #try(waiter: Waiter, isProbe = false): void {
    const sequence = this.#schedule.trying(!isProbe && this.#line.has(waiter));
    const sent = waiter.try(sequence, this.services.clock.jumpedByNow(), isProbe);
    this.#trying.add(waiter);
    waiter.whenTried(sent.request, () => {
      this.#trying.delete(waiter);
      // close() rejects the waiters of the line. A call with a single try is not among them.
      if (!serves(this.services, waiter)) waiter.leave(new ClientClosedError());
      waiter.tried();
      const { error } = sent.request;
      // The client does not repeat a try that its waiter no longer needs. Its failure says nothing about Redis.
      const isNews = error === undefined || (waiter.wantsGrant && waiter.state !== 'granted');
      if (isNews) this.#line.settled(error);
      this.#tried(waiter, sent);
      waiter.onTryOver();
      if (this.#undecided.size > 0) this.#settleUndecided(isNews);
      this.changed();
    });
  }

  /**
   * `isNews`: a reply has said whether the lock is busy, or the try has failed. `Waiter.reject()` knows which. Otherwise
   * the calls need another try.
   */
  #settleUndecided(isNews: boolean): void {
    for (const waiter of [...this.#undecided]) {
      if (!this.#undecided.delete(waiter)) continue;
      const busy = waiter.reason as LockError;
      // close() rejects the waiters of the line. These calls are not among them.
      if (!serves(this.services, waiter)) waiter.reject(new ClientClosedError());
      else if (isNews) waiter.reject(busy);
      else this.#settleByReply(waiter, busy);
    }
  }

  #tried(waiter: Waiter, sent: Try): void {
    const { request, sequence, jumped } = sent;
    const { reply } = request;
    const taken = waiter.confirmsAcquisition(request);
    // A release, or another try, has granted the call meanwhile. What its own try acquired is surplus.
    const isSurplus = waiter.state === 'granted';
    if (!isSurplus && this.#grantIfTaken(waiter, sent, taken)) return;
    const isPassed = isSurplus && taken && waiter instanceof SharedWaiter && this.shared.passSurplus(waiter, request);
    if (!isPassed) this.#failures.releaseTaken(waiter, sent, taken);
    const repliedAt = this.services.clock.at(request.sentAt, jumped);
    if (reply?.kind === 'busy') this.#schedule.learn(reply, repliedAt, sequence, waiter.permits);
    if (!isSurplus) this.#failures.failed(waiter, sent);
  }

  #grantIfTaken(waiter: Waiter, sent: Try, taken: boolean): boolean {
    if (waiter instanceof LockWaiter) return this.#grants.grantIfTaken(waiter, sent);
    return waiter instanceof SharedWaiter && this.shared.grantIfTaken(waiter, sent, taken);
  }

  /** A request has settled, or a tenure of this client no longer has the lock. */
  changed(): void {
    this.step();
    this.#scheduleRemoval();
    this.#notifyIdle();
  }

  /** Passes released permits to the waiters of this line. Returns the number that remains to be released in Redis. */
  passOn(permits: number): number {
    const left = this.shared.passOn(permits);
    this.changed();
    return left;
  }

  /** Whether the other clients try first after a release of this client. */
  get yields(): boolean {
    return this.#schedule.yields;
  }

  /** Called when no other client received the message of a release. */
  noOtherSubscriber(): void {
    this.#schedule.noOtherSubscriber();
  }

  rejectAll(error: LockError, isKept: (waiter: Waiter) => boolean = () => false): void {
    for (const waiter of [...this.#line]) if (!isKept(waiter)) this.leave(waiter, error);
  }

  /** Moves the subscription to the channel of the waiter's new owner. */
  follow({ ownChannel }: LockWaiter): void {
    if (ownChannel === undefined || this.#wakeUps.isAt(ownChannel)) return;
    this.forgetChannel();
    this.#wakeUps.moveTo(ownChannel);
  }

  /** Schedules an idle subscription, or an idle line for a Redis queue, for removal. */
  #scheduleRemoval(): void {
    if (this.isSubscribed || this.queue !== undefined) this.registry.linger(this);
  }

  /** Ends the subscription. */
  forgetChannel(): void {
    if (!this.isSubscribed) return;
    this.#schedule.unsubscribed();
    this.#wakeUps.end();
  }

  /** Stops the repetition of pending tries, so that the client can sooner release what they acquired. */
  abandonTries(): void {
    for (const waiter of this.#trying) waiter.abandonTry();
  }

  /** Resolves when no request that may acquire, hand over or free the lock is pending. */
  whenIdle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      this.#notifyIdle();
    });
  }

  #notifyIdle(): void {
    if (this.#onIdle === undefined || this.hasPending) return;
    for (const tenure of this.holders) if (tenure.isReleasing) return;
    this.#onIdle();
  }

  close(error: LockError): void {
    this.rejectAll(error);
    this.#schedule.reset();
  }
}
