/*
 * All local waiters of one channel, and the one wait loop. Only the head contends in Redis:
 *
 *   try -> busy: subscribe -> confirmed: try again -> busy: park
 *   park until a message, the end of the holder's lease, the waiter's own time, or its signal; and no longer than a
 *   second or two while no message can be heard
 *
 * A wake-up sets the entry's mark, and whoever is the head tries. Sending a try clears the mark and forgets the holder's
 * ttl; only the answer to the newest try makes it known again. Nobody parks while the mark is set or the ttl unknown
 * (next-look.ts), so none is lost with a waiter that leaves or under a reply. tests/verification/model/Waiting.tla is both files.
 */
import {
  ClientClosedError,
  LockTimeoutError,
  RedisUnavailableError,
  type LockError,
  type RefusedError,
} from '../errors.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply } from '../redis/scripts/lock.js';
import type { ChannelListener } from '../redis/connections/subscriber.js';
import type { ChannelSource } from '../redis/topologies/topology.js';
import type { EntryRegistry } from './wait-lines.js';
import { EntrySubscription } from './wake-ups.js';
import { Grants } from './grants.js';
import { answeredTooLate } from '../holding/hold-record.js';
import { LightSet } from '../light-set.js';
import { LocalLine } from './line.js';
import type { LockRuntime } from './lock-runtime.js';
import { NextLook } from './retry-schedule.js';
import type { QueuedLine } from './fair-places.js';
import { SharedWaiter, wantsLess } from './shared-waiter.js';
import type { Tenure } from '../holding/tenure.js';
import { LockWaiter, type Waiter } from './waiter.js';

export class LockEntry implements ChannelListener {
  readonly grants: Grants;
  readonly #line: LocalLine;
  readonly #look: NextLook;
  readonly #subscription: EntrySubscription;
  /** Who has a try under way. */
  readonly #trying = new LightSet<Waiter>();
  #onQuiet: (() => void) | undefined;

  constructor(
    private readonly runtime: LockRuntime,
    private readonly registry: EntryRegistry,
    subscriber: ChannelSource,
    private readonly key: string,
    private readonly channel: string,
    /** Those who wait here can hold together: a holder of this client keeps nobody out. */
    private readonly shared: boolean,
    /** The line in Redis that the one waiter of this entry stands in; its channel is its owner's. */
    readonly queue?: QueuedLine,
  ) {
    const line = new LocalLine(runtime, queue, () => {
      this.#look.rest();
      registry.attend(this, false);
    });
    this.#line = line;
    this.#look = new NextLook(runtime, line, () => this.#step());
    this.#subscription = new EntrySubscription(subscriber, channel, this);
    this.grants = new Grants(runtime, this, line, this.#look, this.#subscription, shared);
  }

  get waiterCount(): number {
    return this.#line.waiterCount;
  }

  get holders(): LightSet<Tenure> {
    return this.#line.holders;
  }

  /** Whether others of this client wait at the same channel for something else, as readers do beside writers. */
  get besideOthers(): boolean {
    return this.registry.waitsBeside(this.key, this.channel, this);
  }

  get idle(): boolean {
    return this.#line.waiterCount === 0 && this.holders.size === 0 && this.#trying.size === 0;
  }

  /** Those of this client who ask Redis for it just now, or whom it is being handed to. */
  get coming(): Waiter[] {
    return [...this.#trying, ...this.grants.heirs];
  }

  get isComing(): boolean {
    return this.#trying.size > 0 || this.grants.heirs.size > 0;
  }

  get wanted(): boolean {
    return this.#subscription.wanted;
  }

  /** Takes the lock for `waiter`, in its turn. A call that does not wait makes one try beside the line. */
  acquire(waiter: Waiter): void {
    // A call over several locks may come here when close() has rejected all who wait, and looks at nobody new.
    if (this.runtime.closed) return waiter.reject(new ClientClosedError());
    waiter.watchSignal((reason) => this.#leave(waiter, reason));
    if (waiter instanceof SharedWaiter) waiter.cameAfter = this.#look.newestTry;
    if (waiter.patience.until === -Infinity) {
      this.#try(waiter);
    } else {
      this.#line.add(waiter);
      this.#step();
      if (!waiter.busy) this.#standInLine(waiter);
    }
  }

  /** From here on the call really waits. */
  #standInLine(waiter: Waiter): void {
    if (waiter.inLine) return;
    waiter.inLine = true;
    waiter.watchTime((reason) => this.#leave(waiter, reason));
    this.#line.stand(waiter, () => this.#look.wake());
  }

  /** The waiter's time is up or its signal fired. */
  #leave(waiter: Waiter, reason: LockError): void {
    waiter.leaving = reason;
    waiter.unwatch();
    const wasHead = this.#line.head === waiter;
    this.#line.remove(waiter);
    if (wasHead && wantsLess(this.#line.head, waiter)) this.#look.mark = true;
    // A try or hand-off that is under way settles the call; until then it could still be granted.
    if (!waiter.busy) waiter.reject(reason);
    // Others may leave by the same signal: none of them is to become the head, and try, on the way.
    queueMicrotask(() => {
      waiter.trying?.abandon();
      this.#step();
    });
    this.#rest();
  }

  /** Does what there is to do next, if anything; called whenever something has changed. */
  #step(): void {
    const look = this.#look;
    if (this.#line.waiterCount === 0) return;
    if (look.flowing) return this.#tryAll();
    const { head } = this.#line;
    if (head === undefined || head.busy) return;
    if (look.isDue && (this.shared || this.holders.size === 0)) return this.#try(head);
    const now = this.runtime.clock.now();
    if (look.isPaused(now)) return;
    const localDeadline = this.shared ? 0 : this.#line.holdersDeadline(now);
    if (head.busy) return; // a loss that was noticed just now has made it try
    const isKnown = look.isAhead(now) || localDeadline > 0;
    if (look.mark || head.again || !isKnown) return this.#try(head);
    this.registry.attend(this, true);
    if (!this.wanted && !(head instanceof LockWaiter && head.protocol.polls !== undefined)) this.#subscription.begin();
    if (localDeadline > 0) return look.wakeAt(localDeadline);
    // Whoever queues in Redis gives signs of life there, which tell it all.
    const isHeard = !this.wanted || this.queue !== undefined || this.#subscription.isConfirmed;
    if (!look.park(now, isHeard)) this.#try(head, true);
  }

  #tryAll(): void {
    for (const waiter of [...this.#line]) if (!waiter.busy) this.#try(waiter);
  }

  #try(waiter: Waiter, inBetween = false): void {
    const sequence = this.#look.trying(!inBetween && this.#line.has(waiter));
    waiter.inBetween = inBetween;
    waiter.again = false;
    waiter.busy = true;
    this.runtime.clock.now(); // a jump while nobody asked for the time is none of this try
    const { jumped } = this.runtime.clock;
    const request = waiter.try();
    waiter.trying = request;
    this.#trying.add(waiter);
    waiter.whenTried(request, () => {
      this.#trying.delete(waiter);
      waiter.busy = false;
      waiter.trying = undefined;
      this.#tried(waiter, request, jumped, sequence);
      waiter.over();
      this.#step();
      this.#rest();
      this.#tellQuiet();
    });
  }

  #tried(waiter: Waiter, request: ScriptRequest<AcquireReply>, jumped: number, sequence: number): void {
    // A single try stands in no line that close() could end.
    if (this.runtime.closed) waiter.leaving ??= new ClientClosedError();
    const { error } = request;
    const taken = waiter.took(request);
    const served = waiter instanceof SharedWaiter && waiter.served;
    if (!served && this.grants.tried(waiter, request, taken, jumped, sequence)) return;
    if (!served || !taken || !this.grants.passTaken(waiter)) this.#takeBack(waiter, request, taken);
    if (typeof request.reply === 'number') this.#look.learn(request.reply, request.sentAt + jumped, sequence);
    if (served) return;
    if (waiter instanceof LockWaiter) this.#pollLater(waiter);
    if (waiter.leaving !== undefined) return waiter.reject(waiter.leaving);
    if (!this.#line.has(waiter)) {
      const busy = new LockTimeoutError(waiter.name, waiter.patience.waitTime);
      return waiter.reject(error ?? (typeof request.reply === 'number' ? busy : answeredTooLate()));
    }
    this.#standInLine(waiter);
    if (error === undefined) {
      if (typeof request.reply !== 'number') this.#grantedTooLate(waiter);
      return;
    }
    waiter.unavailable = error;
    // Whoever sleeps through an outage does not fail for it.
    if (waiter.inBetween) return;
    if (!(error instanceof RedisUnavailableError)) {
      this.#line.remove(waiter);
      return waiter.reject(error);
    }
    this.#pause(waiter, error);
    // One command deadline without Redis is enough for those who set no limit themselves.
    for (const other of [...this.#line]) {
      // Readers try side by side: what is under way settles its own call.
      if (!other.unlimited || other.busy) continue;
      this.#line.remove(other);
      other.reject(error);
    }
  }

  /** Whatever the try may have taken that nobody gets is given back. */
  #takeBack(waiter: Waiter, request: ScriptRequest<AcquireReply>, taken: boolean): void {
    if (request.error === undefined && !taken) waiter.unavailable = waiter.lateSince = undefined;
    if (!taken && !request.inDoubt) return;
    waiter.doubts(request);
    const givenBack = waiter.takeBack(request);
    // Of some kinds nobody is told that it is free again. A look in between is followed by another.
    if (!waiter.inBetween) void givenBack?.then(() => this.#look.wake());
    if (waiter instanceof LockWaiter) this.#follow(waiter);
  }

  /** Nobody will tell it when the lock is free. */
  #pollLater(waiter: LockWaiter): void {
    const { polls } = waiter.protocol;
    if (polls === undefined || !this.#look.isKnown) return;
    waiter.failures += 1;
    waiter.pauseMs = polls(waiter.pauseMs, waiter.failures);
    this.#look.noLaterThan(this.runtime.clock.now() + waiter.pauseMs);
  }

  /** Once may be a blocked event loop. For a whole command deadline it is a lease too short for the way to Redis. */
  #grantedTooLate(waiter: Waiter): void {
    const now = this.runtime.clock.now();
    waiter.lateSince ??= now;
    this.#pause(waiter, answeredTooLate());
    if (!waiter.unlimited || now - waiter.lateSince < this.runtime.options.commandTimeout) return;
    this.#line.remove(waiter);
    waiter.reject(answeredTooLate());
  }

  #pause(waiter: Waiter, error: LockError): void {
    waiter.unavailable = error;
    waiter.again = true;
    this.#look.pause();
  }

  /** A tenure of ours does not have the lock any more. */
  ended(tenure: Tenure, how: 'freed' | 'handed' | 'lost' | 'unknown'): void {
    this.grants.ended(tenure, how);
    this.#step();
    this.#rest();
    this.#tellQuiet();
  }

  /** Gives permits to those in line here. Returns how many are left to give back in Redis. */
  passOn(permits: number): number {
    const left = this.grants.passOn(permits);
    this.#step();
    this.#rest();
    return left;
  }

  /** What was given back in Redis was published to no other client. */
  unheard(): void {
    this.#look.unheard();
  }

  /** Channels know no databases, and anybody may publish: whatever a message says, it is only a reason to look. */
  message(): void {
    this.#look.published();
    this.#look.wake();
  }

  /** What was published before the subscription stood was missed: the head looks again, if it can have been told. */
  confirmed(): void {
    if (!this.#line.isBehind) this.#look.mark = true;
    this.#step();
  }

  cut(): void {
    this.#step();
  }

  refused(error: RefusedError): void {
    this.#subscription.end();
    this.rejectAll(error);
  }

  rejectAll(error: LockError): void {
    for (const waiter of [...this.#line]) this.#leave(waiter, error);
  }

  /** The waiter has a fresh owner, which is told elsewhere. */
  #follow({ ownChannel }: LockWaiter): void {
    if (ownChannel === undefined || this.#subscription.isAt(ownChannel)) return;
    this.forgetChannel();
    this.#subscription.moveTo(ownChannel);
  }

  /** What nobody uses any more goes, sooner or later. */
  #rest(): void {
    if (this.wanted || this.queue !== undefined) this.registry.linger(this);
  }

  /** The lingering subscription is over. */
  forgetChannel(): void {
    if (!this.wanted) return;
    this.#look.forget();
    this.#subscription.end();
  }

  /** Tries under way are repeated no more: what they took can be given back the sooner. */
  abandonTries(): void {
    for (const waiter of this.#trying) waiter.trying?.abandon();
  }

  /** Resolves when no request that may take, pass on or free the lock is under way any more. */
  whenQuiet(): Promise<void> {
    return new Promise((resolve) => {
      this.#onQuiet = resolve;
      this.#tellQuiet();
    });
  }

  #tellQuiet(): void {
    if (this.#onQuiet === undefined || this.#trying.size > 0) return;
    for (const tenure of this.holders) if (tenure.ending) return;
    this.#onQuiet();
  }

  close(error: LockError): void {
    this.rejectAll(error);
    this.#look.rest();
  }
}
