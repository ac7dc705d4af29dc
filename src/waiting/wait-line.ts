/*
 * All local waiters of one channel, and the one wait loop. Only the head contends in Redis:
 *
 *   try -> busy: subscribe -> confirmed: try again -> busy: park
 *   park until a message, the end of the holder's lease, the waiter's own time, or its signal; and no longer than a
 *   second or two while no message can be heard
 *
 * A wake-up is pending until the head tries, whichever waiter that is. Sending a try clears it and forgets the holder's
 * ttl; only the answer to the newest try makes the ttl known again. No waiter parks while a wake-up is pending or the ttl
 * is unknown (retry-schedule.ts), so no wake-up is lost with a waiter that leaves, or under a reply.
 * tests/verification/model/Waiting.tla is both files.
 */
import { ClientClosedError, type LockError } from '../errors.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply } from '../redis/scripts/replies.js';
import type { ChannelSource } from '../redis/connections/channel-source.js';
import { WakeUps } from './wake-ups.js';
import { FailedTries } from './failed-tries.js';
import { Grants, type GrantingLine, type GrantServices } from './grants.js';
import { LightSet } from '../light-set.js';
import { LocalLine, type LineServices } from './line.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import { RetrySchedule } from './retry-schedule.js';
import type { QueuedLine } from './fair-places.js';
import { SharedWaiter, wantsLess } from './shared-waiter.js';
import type { Ended } from '../holding/tenure-host.js';
import type { TenureEnd } from '../holding/tenure-end.js';
import type { Tenure } from '../holding/tenure.js';
import { LockWaiter, type Waiter } from './waiter.js';

/** What the lines of one client need of it. */
export interface WaitServices extends LineServices, GrantServices {
  readonly client: { readonly closed: boolean };
  readonly options: GrantServices['options'] & { readonly lockWatchdogTimeout: number };
}

/** The lines of one client, as each of them sees the others. */
export interface LineRegistry {
  /** Whether a call waits in the line: only then is the subscription connection watched. */
  attend(line: WaitLine, attended: boolean): void;
  /** Ends the subscription of the line some time after it was last needed. */
  linger(line: WaitLine): void;
  /** Whether calls wait in the other line of this lock. */
  waitsBeside(protocol: LockProtocol): boolean;
}

export class WaitLine implements GrantingLine {
  readonly #grants: Grants;
  readonly #failures: FailedTries;
  readonly #line: LocalLine;
  readonly #schedule: RetrySchedule;
  readonly #wakeUps: WakeUps;
  /** Waiters that have a try under way. */
  readonly #trying = new LightSet<Waiter>();
  #onIdle: (() => void) | undefined;

  constructor(
    private readonly services: WaitServices,
    private readonly registry: LineRegistry,
    subscriber: ChannelSource,
    channel: string,
    /** The calls that wait here can hold together: a holder of this client keeps none out. */
    private readonly concurrent: boolean,
    /** The queue in Redis that the one waiter of this line has its place in; its channel is its owner's. */
    readonly queue?: QueuedLine,
  ) {
    const line = new LocalLine(services, queue, () => {
      this.#schedule.reset();
      registry.attend(this, false);
    });
    const { clock, options } = services;
    this.#line = line;
    this.#schedule = new RetrySchedule(clock, options.lockWatchdogTimeout, line, () => this.step());
    this.#wakeUps = new WakeUps(subscriber, channel, line, this.#schedule, this);
    this.#grants = new Grants(services, this, line, this.#schedule, this.#wakeUps, concurrent);
    this.#failures = new FailedTries(services, this, line, this.#schedule);
  }

  get waiterCount(): number {
    return this.#line.waiterCount;
  }

  get holders(): LightSet<Tenure> {
    return this.#line.holders;
  }

  othersWait(protocol: LockProtocol): boolean {
    return this.registry.waitsBeside(protocol);
  }

  get idle(): boolean {
    return this.#line.waiterCount === 0 && this.holders.size === 0 && this.#trying.size === 0;
  }

  /** Those of this client who ask Redis for it just now, or whom it is being handed to. */
  get coming(): Waiter[] {
    return [...this.#trying, ...this.#grants.successors];
  }

  get isComing(): boolean {
    return this.#trying.size > 0 || this.#grants.successors.size > 0;
  }

  get wanted(): boolean {
    return this.#wakeUps.wanted;
  }

  /** Takes the lock for `waiter`, in its turn. A call that does not wait makes one try beside the line. */
  acquire(waiter: Waiter): void {
    // A call over several locks may come here when close() has rejected all who wait, and looks at nobody new.
    if (this.services.client.closed) return waiter.reject(new ClientClosedError());
    waiter.watchSignal((reason) => this.#leave(waiter, reason));
    if (waiter instanceof SharedWaiter) waiter.cameAfter = this.#schedule.newestTry;
    if (waiter.limit.until === -Infinity) {
      this.#try(waiter);
    } else {
      this.#line.add(waiter);
      this.step();
      if (!waiter.busy) this.standInLine(waiter);
    }
  }

  /** From here on the call really waits. */
  standInLine(waiter: Waiter): void {
    if (waiter.inLine) return;
    waiter.inLine = true;
    waiter.watchTime((reason) => this.#leave(waiter, reason));
    this.#line.stand(waiter, () => this.#schedule.wake());
  }

  /** The waiter's time is up or its signal fired. */
  #leave(waiter: Waiter, reason: LockError): void {
    waiter.leaving = reason;
    waiter.unwatch();
    const wasHead = this.#line.head === waiter;
    this.#line.remove(waiter);
    if (wasHead && wantsLess(this.#line.head, waiter)) this.#schedule.wakeUpPending = true;
    // A try or hand-off that is under way settles the call; until then it could still be granted.
    if (!waiter.busy) waiter.reject(reason);
    // Others may leave by the same signal: none of them is to become the head, and try, on the way.
    queueMicrotask(() => {
      waiter.trying?.abandon();
      this.step();
    });
    this.#rest();
  }

  /** Does what there is to do next, if anything; called whenever something has changed. */
  step(): void {
    const schedule = this.#schedule;
    if (this.#line.waiterCount === 0) return;
    if (schedule.admitAll) return this.#tryAll();
    const { head } = this.#line;
    if (head === undefined || head.busy) return;
    if (schedule.isDue && (this.concurrent || this.holders.size === 0)) return this.#try(head);
    const now = this.services.clock.now();
    schedule.advance(now);
    if (schedule.isPaused) return schedule.wakeAfterPause();
    // First: a loss that is reported makes a step of its own, which may have the head try.
    if (!this.concurrent) this.#line.checkHolders();
    if (head.busy) return;
    const localDeadline = this.concurrent ? 0 : this.#line.holdersDeadline(now);
    const isKnown = schedule.isKnown || localDeadline > 0;
    if (schedule.wakeUpPending || head.again || !isKnown) return this.#try(head);
    this.registry.attend(this, true);
    if (!this.wanted && !(head instanceof LockWaiter && head.protocol.polls !== undefined)) this.#wakeUps.begin();
    if (localDeadline > 0) return schedule.wakeAt(localDeadline);
    // A waiter that queues in Redis shows regularly that it is alive, and the answer tells it all.
    const isHeard = !this.wanted || this.queue !== undefined || this.#wakeUps.isConfirmed;
    if (!schedule.park(now, isHeard)) this.#try(head, true);
  }

  #tryAll(): void {
    for (const waiter of [...this.#line]) if (!waiter.busy) this.#try(waiter);
  }

  #try(waiter: Waiter, inBetween = false): void {
    const sequence = this.#schedule.trying(!inBetween && this.#line.has(waiter));
    waiter.inBetween = inBetween;
    waiter.again = false;
    waiter.busy = true;
    this.services.clock.now(); // a jump while nobody asked for the time is none of this try
    const { jumped } = this.services.clock;
    const request = waiter.try();
    waiter.trying = request;
    this.#trying.add(waiter);
    waiter.whenTried(request, () => {
      this.#trying.delete(waiter);
      waiter.busy = false;
      waiter.trying = undefined;
      this.#tried(waiter, request, jumped, sequence);
      waiter.over();
      this.step();
      this.#rest();
      this.#tellQuiet();
    });
  }

  #tried(waiter: Waiter, request: ScriptRequest<AcquireReply>, jumped: number, sequence: number): void {
    // A single try stands in no line that close() could end.
    if (this.services.client.closed) waiter.leaving ??= new ClientClosedError();
    const taken = waiter.took(request);
    const served = waiter instanceof SharedWaiter && waiter.served;
    if (!served && this.#grants.tried(waiter, request, taken, jumped, sequence)) return;
    if (!served || !taken || !this.#grants.passTaken(waiter)) this.#failures.takeBack(waiter, request, taken);
    if (typeof request.reply === 'number') this.#schedule.learn(request.reply, request.sentAt + jumped, sequence);
    if (!served) this.#failures.failed(waiter, request);
  }

  successorFor(leaseEnd: number): LockWaiter | undefined {
    return this.#grants.successorFor(leaseEnd);
  }

  handOff(tenure: Tenure, successor: LockWaiter, released: () => void): Promise<TenureEnd> {
    return this.#grants.handOff(tenure, successor, released);
  }

  /** A tenure of this client does not have the lock any more. */
  ended(tenure: Tenure, how: Ended): void {
    this.#grants.ended(tenure, how);
    this.step();
    this.#rest();
    this.#tellQuiet();
  }

  /** Gives permits to those in line here. Returns how many are left to give back in Redis. */
  passOn(permits: number): number {
    const left = this.#grants.passOn(permits);
    this.step();
    this.#rest();
    return left;
  }

  /** The message of a release in Redis went to no other client. */
  noOtherSubscriber(): void {
    this.#schedule.noOtherSubscriber();
  }

  rejectAll(error: LockError): void {
    for (const waiter of [...this.#line]) this.#leave(waiter, error);
  }

  /** The waiter has a fresh owner, which is told elsewhere. */
  follow({ ownChannel }: LockWaiter): void {
    if (ownChannel === undefined || this.#wakeUps.isAt(ownChannel)) return;
    this.forgetChannel();
    this.#wakeUps.moveTo(ownChannel);
  }

  /** What nobody uses any more goes, sooner or later. */
  #rest(): void {
    if (this.wanted || this.queue !== undefined) this.registry.linger(this);
  }

  /** The lingering subscription is over. */
  forgetChannel(): void {
    if (!this.wanted) return;
    this.#schedule.unsubscribed();
    this.#wakeUps.end();
  }

  /** Tries under way are repeated no more: what they took can be given back the sooner. */
  abandonTries(): void {
    for (const waiter of this.#trying) waiter.trying?.abandon();
  }

  /** Resolves when no request that may take, pass on or free the lock is under way any more. */
  whenQuiet(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      this.#tellQuiet();
    });
  }

  #tellQuiet(): void {
    if (this.#onIdle === undefined || this.#trying.size > 0) return;
    for (const tenure of this.holders) if (tenure.ending) return;
    this.#onIdle();
  }

  close(error: LockError): void {
    this.rejectAll(error);
    this.#schedule.reset();
  }
}
