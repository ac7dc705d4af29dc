/*
 * All local waiters of one channel, and the one wait loop. Only the head contends in Redis:
 *
 *   try -> busy: subscribe -> confirmed: try again -> busy: park
 *   park until a message, the end of the holder's lease, the waiter's own time, or its signal
 *
 * A wake-up belongs to the entry, not to a waiter: it sets `mark`, and whoever is the head tries. Sending a try clears
 * the mark and forgets the holder's ttl; only the answer to the newest try makes the ttl known again. Nobody parks
 * while the mark is set or the ttl is not known, so no wake-up is lost with a waiter that leaves, nor under a reply
 * that was on its way. tests/model/Waiting.tla is this file.
 */
import {
  ClientClosedError,
  LockTimeoutError,
  NotReplicatedError,
  RedisUnavailableError,
  type LockError,
  type RefusedError,
} from '../errors.js';
import type { ScriptRequest } from '../redis/script-executor.js';
import type { AcquireReply, HandOffReply } from '../redis/scripts/lock.js';
import type { ChannelListener } from '../redis/subscriber.js';
import type { ChannelSource } from '../redis/topology.js';
import type { Timer } from '../clock.js';
import type { CallSite } from './call-site.js';
import { latestEnd } from './compensations.js';
import type { EntryRegistry } from './entry-registry.js';
import { holdFor } from './single-hold.js';
import { grantDeadline } from './hold-record.js';
import { HandOffStreak } from './hand-off-streak.js';
import type { LockRuntime } from './lock-runtime.js';
import { LongWaitWatch } from './long-wait.js';
import type { QueuedLine } from './queued-line.js';
import { Tenure } from './tenure.js';
import type { TenureEnd } from './tenure-end.js';
import { SharedWaiter } from './shared-waiter.js';
import { LockWaiter, type Waiter } from './waiter.js';

/** The lease ends in Redis at some moment of its last millisecond; looking sooner would find it busy once more. */
const AFTER_LEASE_MS = 2;
/** A ttl of 0: the key is in its last millisecond. */
const TTL_ZERO_MS = 10;
/** After a lock was published the local head leaves others this much time from the message, or from the release. */
const YIELD_AFTER_MESSAGE_MS = 2;
const YIELD_MS = 20;
const PAUSE_MS = { first: 100, longest: 1_000 };

type GrantRequest = ScriptRequest<AcquireReply> | ScriptRequest<HandOffReply>;

export class LockEntry implements ChannelListener {
  readonly #waiters = new Set<Waiter>();
  /** Tenures of this client that have the lock. */
  readonly holders = new Set<Tenure>();
  readonly #streak: HandOffStreak;
  readonly #longWait: LongWaitWatch;
  /** Something happened since the last try was sent: the next head tries. */
  #mark = false;
  /** Lease clock ms at which to look again without a wake-up; undefined: not known. */
  #lookAt: number | undefined;
  #newestTry = 0;
  #triesUnderWay = 0;
  #pausedUntil = 0;
  #pauseMs = PAUSE_MS.first;
  #yielding = false;
  /** Of those who can hold together one got in just now: the others try beside one another. */
  #flowing = false;
  #timer: Timer | undefined;
  #timerAt = Infinity;
  #wanted = false;
  #onQuiet: (() => void) | undefined;

  constructor(
    private readonly runtime: LockRuntime,
    private readonly registry: EntryRegistry,
    private readonly subscriber: ChannelSource,
    private channel: string,
    /** Those who wait here can hold together: a holder of this client keeps nobody out. */
    private readonly shared: boolean,
    /** The line in Redis that the one waiter of this entry stands in; its channel is its owner's. */
    readonly line?: QueuedLine,
  ) {
    this.#streak = new HandOffStreak(runtime.options.handOff, runtime.clock);
    this.#longWait = line?.longWait ?? new LongWaitWatch(runtime, this);
  }

  get waiterCount(): number {
    return this.#waiters.size;
  }

  get idle(): boolean {
    return this.#waiters.size === 0 && this.holders.size === 0 && this.#triesUnderWay === 0;
  }

  get wanted(): boolean {
    return this.#wanted;
  }

  /** Takes the lock for `waiter`, in its turn. A call that does not wait makes one try beside the line. */
  acquire(waiter: Waiter): void {
    waiter.watchSignal((reason) => this.#leave(waiter, reason));
    if (waiter.patience.until === -Infinity) {
      this.#try(waiter);
    } else {
      this.#waiters.add(waiter);
      this.#step();
      if (!waiter.busy) this.#standInLine(waiter);
    }
  }

  /** From here on the call really waits. */
  #standInLine(waiter: Waiter): void {
    if (waiter.inLine) return;
    waiter.inLine = true;
    waiter.watchTime((reason) => this.#leave(waiter, reason));
    if (waiter instanceof LockWaiter) this.line?.join(waiter, () => this.#wake());
    this.#longWait.waiting();
    const { events } = this.runtime;
    if (events.heard('waiting')) {
      events.emit('waiting', { lockName: waiter.name, waiters: (this.line ?? this).waiterCount });
    }
    if (this.#wanted && waiter instanceof SharedWaiter && waiter.forAll) this.#cover();
  }

  #remove(waiter: Waiter): void {
    if (!this.#waiters.delete(waiter)) return;
    this.line?.leave(waiter);
    if (this.#waiters.size > 0) return;
    this.#lookAt = undefined; // the last one forgets what it knew of the holder
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAt = Infinity;
    if (this.line === undefined) this.#longWait.stop();
    this.registry.attend(this, false);
  }

  /** The waiter's time is up or its signal fired. */
  #leave(waiter: Waiter, reason: LockError): void {
    waiter.leaving = reason;
    waiter.unwatch();
    this.#remove(waiter);
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
    if (this.#waiters.size === 0) return;
    if (this.#flowing) return this.#tryAll();
    const head = this.#head();
    if (head === undefined || head.busy) return;
    const held = this.holders.size > 0 && !this.shared;
    if (this.#pausedUntil === 0 && this.#lookAt === undefined && !held) return this.#try(head);
    const now = this.runtime.clock.now();
    if (now < this.#pausedUntil) return this.#wakeAt(this.#pausedUntil);
    this.#pausedUntil = 0;
    const localDeadline = this.#localDeadline(now);
    if (head.busy) return; // a loss that was noticed just now has made it try
    if (this.#lookAt !== undefined && now >= this.#lookAt) this.#lookAt = undefined;
    const lookAt = localDeadline > 0 ? localDeadline : this.#lookAt;
    if (this.#mark || head.again || lookAt === undefined) return this.#try(head);
    this.registry.attend(this, true);
    if (!this.#wanted && !(head instanceof LockWaiter && head.protocol.polls !== undefined)) this.#subscribe();
    // The subscription may be long in coming: the lease of the holder ends nevertheless.
    this.#wakeAt(lookAt);
  }

  #tryAll(): void {
    for (const waiter of [...this.#waiters]) if (!waiter.busy) this.#try(waiter);
  }

  #subscribe(): void {
    this.#wanted = true;
    const fresh = this.subscriber.want(this.channel, this);
    for (const waiter of this.#waiters) {
      if (!(waiter instanceof SharedWaiter) || !waiter.inLine) continue;
      waiter.asked = true;
      waiter.covered ||= fresh;
    }
  }

  /** Who joined late learns from a further confirmation which messages are not older than its wait; one at a time. */
  #cover(): void {
    let uncovered = false;
    for (const waiter of this.#waiters) {
      if (!(waiter instanceof SharedWaiter) || waiter.covered) continue;
      if (waiter.asked) return;
      uncovered ||= waiter.forAll && waiter.inLine;
    }
    if (uncovered) this.#subscribe();
  }

  #try(waiter: Waiter): void {
    const inLine = this.#waiters.has(waiter);
    if (inLine) {
      this.#mark = false;
      this.#lookAt = undefined;
      this.#yielding = false;
    }
    waiter.again = false;
    waiter.busy = true;
    const sequence = ++this.#newestTry;
    const jumped = this.runtime.clock.jumped;
    const request = waiter.send();
    waiter.trying = request;
    this.#triesUnderWay += 1;
    waiter.whenTried(request, () => {
      this.#triesUnderWay -= 1;
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
    if (this.#settleTry(waiter, request, jumped, sequence)) return;
    const { error } = request;
    if (typeof request.reply === 'number') this.#learn(request.reply, request.sentAt + jumped, sequence);
    if (waiter instanceof LockWaiter) this.#pollLater(waiter);
    if (waiter.leaving !== undefined) return waiter.reject(waiter.leaving);
    if (!this.#waiters.has(waiter)) {
      const busy = new LockTimeoutError(waiter.name, waiter.patience.waitTime);
      return waiter.reject(error ?? (typeof request.reply === 'number' ? busy : answeredTooLate()));
    }
    this.#standInLine(waiter);
    if (error === undefined) {
      if (typeof request.reply !== 'number') this.#grantedTooLate(waiter);
      return;
    }
    if (!isUnavailable(error)) {
      this.#remove(waiter);
      return waiter.reject(error);
    }
    this.#pause(waiter, error);
    // One command deadline without Redis is enough for those who set no limit themselves.
    for (const other of [...this.#waiters]) {
      if (!other.unlimited) continue;
      this.#remove(other);
      other.reject(error);
    }
  }

  /** Nobody will tell it when the lock is free. */
  #pollLater(waiter: LockWaiter): void {
    const { polls } = waiter.protocol;
    if (polls === undefined || this.#lookAt === undefined) return;
    waiter.failures += 1;
    waiter.pauseMs = polls(waiter.pauseMs, waiter.failures);
    this.#lookAt = Math.min(this.#lookAt, this.runtime.clock.now() + waiter.pauseMs);
  }

  /** True if the try was granted, to whomever. Whatever it may have taken that nobody gets is given back. */
  #settleTry(waiter: Waiter, request: ScriptRequest<AcquireReply>, jumped: number, sequence: number): boolean {
    const sentAt = request.sentAt + jumped;
    const taken = request.error === undefined && typeof request.reply !== 'number';
    const now = this.runtime.clock.now();
    if (waiter instanceof LockWaiter) {
      if (taken && now < grantDeadline(sentAt, waiter.leaseMs)) {
        this.#streak.reset();
        this.#grant(waiter, request, sentAt, jumped, false, now);
        return true;
      }
    } else if (waiter instanceof SharedWaiter) {
      if (waiter.opened || (taken && now < sentAt + waiter.leaseMs)) {
        this.#share(waiter, request, sentAt, sequence);
        return true;
      }
    }
    if (request.error === undefined && !taken) {
      waiter.unavailable = undefined;
      waiter.lateSince = undefined;
      if (!request.inDoubt) return false;
    }
    if (taken || request.inDoubt) {
      waiter.doubts(request);
      waiter.takeBack(request);
      if (waiter instanceof LockWaiter) this.#follow(waiter);
      this.#markAt(request.openUntil);
    }
    return false;
  }

  /** The waiter has what it came for, and others may have the same. */
  #share(waiter: SharedWaiter, request: ScriptRequest<AcquireReply>, sentAt: number, sequence: number): void {
    this.#remove(waiter);
    this.#lookAt = undefined;
    this.#pauseMs = PAUSE_MS.first;
    if (!waiter.wantsGrant) {
      waiter.takeBack(request);
      waiter.reject(waiter.leaving as LockError);
    } else {
      waiter.granted(request);
    }
    const { reply } = request;
    if (waiter.forAll) this.#letIn(() => true);
    // The next in line tries at once, unless this answer says when there will be something for it.
    else if (typeof reply === 'object' && reply.free <= 0) this.#learn(reply.freeIn, sentAt, sequence);
    else this.#mark = true;
  }

  #letIn(which: (waiter: SharedWaiter) => boolean): void {
    for (const waiter of [...this.#waiters]) {
      if (!(waiter instanceof SharedWaiter) || !which(waiter)) continue;
      if (waiter.busy) {
        waiter.opened = true;
        continue;
      }
      this.#remove(waiter);
      waiter.granted(undefined);
    }
  }

  /** The lock is the waiter's owner's. If nobody wants it any more it goes on to the next. */
  #grant(
    waiter: LockWaiter,
    request: GrantRequest,
    sentAt: number,
    jumped: number,
    handedOff: boolean,
    now: number,
  ): void {
    const tenure = new Tenure(this.runtime, this, waiter.protocol, waiter.owner, request.openUntil, jumped);
    waiter.hasLock();
    this.#remove(waiter);
    this.#lookAt = undefined;
    this.#pauseMs = PAUSE_MS.first;
    this.holders.add(tenure);
    this.line?.holders.add(tenure);
    this.#flowing = this.shared;
    if (!waiter.wantsGrant) {
      tenure.endUnclaimed(waiter.terms.leaseMs);
      waiter.reject(waiter.leaving as LockError);
      return;
    }
    const record = tenure.open(waiter.terms, sentAt, now);
    if (typeof request.reply === 'bigint') record.token = request.reply;
    this.#longWait.holderChanged();
    const { events } = this.runtime;
    if (events.heard('acquired')) {
      events.emit('acquired', { lockName: waiter.protocol.name, owner: waiter.owner, holdCount: 1, handedOff });
    }
    waiter.resolve(holdFor(record));
  }

  /** Once may be a blocked event loop. For a whole command deadline it is a lease too short for the way to Redis. */
  #grantedTooLate(waiter: Waiter): void {
    const now = this.runtime.clock.now();
    waiter.lateSince ??= now;
    this.#pause(waiter, answeredTooLate());
    if (!waiter.unlimited || now - waiter.lateSince < this.runtime.options.commandTimeout) return;
    this.#remove(waiter);
    waiter.reject(answeredTooLate());
  }

  /** The holder's lease, from the newest try; an older answer says nothing about now. */
  #learn(ttl: number, sentAt: number, sequence: number): void {
    this.#flowing = false;
    if (sequence !== this.#newestTry || this.#waiters.size === 0) return;
    const { lockWatchdogTimeout } = this.runtime.options;
    const waitMs = ttl < 0 ? lockWatchdogTimeout : ttl === 0 ? TTL_ZERO_MS : ttl + AFTER_LEASE_MS;
    this.#pauseMs = PAUSE_MS.first;
    this.#lookAt = Math.max(sentAt + waitMs, this.runtime.clock.now() + 1);
  }

  #pause(waiter: Waiter, error: LockError): void {
    this.#flowing = false;
    waiter.unavailable = error;
    waiter.again = true;
    this.#pausedUntil = this.runtime.clock.now() + this.#pauseMs;
    this.#pauseMs = Math.min(2 * this.#pauseMs, PAUSE_MS.longest);
  }

  /** Who gets the lock when `tenure` ends, without it being free in between. Its lease is the key's until `leaseEnd`. */
  heirOf(tenure: Tenure, leaseEnd: number): LockWaiter | undefined {
    const head = this.#head();
    if (!(head instanceof LockWaiter) || head.busy || !tenure.protocol.handsOff || !head.protocol.handsOff)
      return undefined;
    // Others sleep until the end that they have learned. A shorter lease might end, with its process, in silence.
    if (this.runtime.clock.now() + head.leaseMs < leaseEnd) return undefined;
    return this.#streak.mayGoOn() ? head : undefined;
  }

  /** One script gives the lock to the heir. Its lease counts from the first attempt: a repeat writes nothing. */
  async handOff(tenure: Tenure, heir: LockWaiter): Promise<TenureEnd> {
    const { clock } = this.runtime;
    const jumped = clock.jumped;
    const ours = this.#streak.asksForOthers() ? (this.subscriber.isConfirmed(this.channel) ? 1 : 0) : -1;
    heir.busy = true;
    const { leaseMs } = heir.terms;
    const request = await heir.protocol.handOff(tenure.owner, heir.owner, leaseMs, ours).done;
    heir.busy = false;
    const named = heir.owner;
    const sentAt = request.firstSentAt + jumped;
    const now = clock.now();
    const handed = request.reply === 'handed' || typeof request.reply === 'bigint';
    if (handed && now < grantDeadline(sentAt, leaseMs)) {
      this.holders.delete(tenure);
      this.#streak.count();
      this.#grant(heir, request, sentAt, jumped, true, now);
      return { kind: 'handed' };
    }
    const until = latestEnd(this.runtime, leaseMs);
    // The name is spent: somebody may still act on it.
    heir.owner = this.runtime.newOwner();
    heir.doubts(request);
    if (heir.leaving !== undefined) heir.reject(heir.leaving);
    if (request.error !== undefined && !(request.error instanceof NotReplicatedError)) {
      return { kind: 'failed', error: request.error, alsoOwners: [named], openUntil: request.openUntil, until };
    }
    if (request.reply === 'published') return { kind: 'freed' };
    if (request.reply === 'gone') return { kind: 'gone', inDoubt: request.inDoubt && ours >= 0 };
    void this.runtime.compensations.add({
      send: () => heir.protocol.release([named]),
      notBefore: request.openUntil,
      until,
    });
    this.#mark = true;
    return { kind: 'handed' };
  }

  /** A tenure of ours does not have the lock any more. */
  ended(tenure: Tenure, how: 'freed' | 'handed' | 'lost' | 'unknown'): void {
    this.holders.delete(tenure);
    this.line?.holders.delete(tenure);
    this.#longWait.holderChanged();
    if (how === 'freed') {
      this.#streak.reset();
      if (this.#waiters.size > 0 && this.holders.size === 0 && !this.shared) this.#yield();
    } else if (how !== 'handed') {
      this.#streak.reset();
      this.#mark = true;
    }
    this.#step();
    this.#rest();
    this.#tellQuiet();
  }

  /** The lock was published: others get their chance before the local head, which is a round trip ahead of them. */
  #yield(): void {
    this.#yielding = true;
    this.#mark = true;
    this.#pausedUntil = this.runtime.clock.now() + YIELD_MS;
  }

  message(payload: string): void {
    this.#letIn((waiter) => waiter.covered && waiter.opensOn(payload));
    this.#rest();
    if (this.#yielding) {
      this.#yielding = false;
      this.#pausedUntil = this.runtime.clock.now() + YIELD_AFTER_MESSAGE_MS;
    }
    this.#wake();
  }

  #wake(): void {
    this.#mark = true;
    this.#step();
  }

  /** What was published before the subscription stood was missed: the head looks again. */
  confirmed(): void {
    for (const waiter of this.#waiters) if (waiter instanceof SharedWaiter) waiter.covered ||= waiter.asked;
    if (this.#wanted) this.#cover();
    this.#wake();
  }

  refused(error: RefusedError): void {
    this.#wanted = false;
    this.subscriber.forget(this.channel, this);
    this.rejectAll(error);
  }

  rejectAll(error: LockError): void {
    for (const waiter of [...this.#waiters]) this.#leave(waiter, error);
  }

  /** The waiter has a fresh owner, which is told elsewhere. */
  #follow({ ownChannel }: LockWaiter): void {
    if (ownChannel === undefined || ownChannel === this.channel) return;
    this.forgetChannel();
    this.channel = ownChannel;
  }

  /** What nobody uses any more goes, sooner or later. */
  #rest(): void {
    if (this.#wanted || this.line !== undefined) this.registry.linger(this);
  }

  /** The lingering subscription is over. */
  forgetChannel(): void {
    if (!this.#wanted) return;
    this.#wanted = false;
    this.#mark = false;
    this.#lookAt = undefined;
    this.subscriber.forget(this.channel, this);
  }

  /** Where the first in line called from. */
  get headSite(): CallSite | undefined {
    return this.#head()?.site;
  }

  /** Resolves when no request that may take, pass on or free the lock is under way any more. */
  whenQuiet(): Promise<void> {
    return new Promise((resolve) => {
      this.#onQuiet = resolve;
      this.#tellQuiet();
    });
  }

  #tellQuiet(): void {
    if (this.#onQuiet === undefined || this.#triesUnderWay > 0) return;
    for (const tenure of this.holders) if (tenure.ending) return;
    this.#onQuiet();
  }

  close(error: LockError): void {
    this.rejectAll(error);
    this.#timer?.cancel();
    this.#longWait.stop();
  }

  #head(): Waiter | undefined {
    return this.#waiters.values().next().value;
  }

  /** While a tenure of ours has the lock, its deadline is when to look again; 0 without one. */
  #localDeadline(now: number): number {
    if (this.shared) return 0;
    let latest = 0;
    for (const tenure of this.holders) {
      const sure = tenure.state === 'held' && tenure.lease.check() === 'valid';
      // Its end, or the answer that settles the doubt, makes the next step.
      if (sure) latest = Math.max(latest, tenure.lease.deadline);
      else if (tenure.state !== 'over') latest = Math.max(latest, now + YIELD_MS);
    }
    return latest;
  }

  /** An attempt that may still run is settled by then, one way or the other. */
  #markAt(monotonic: number): void {
    const { clock } = this.runtime;
    clock.clock.setTimer(monotonic - clock.clock.monotonic() + 1, () => {
      this.#wake();
    });
  }

  #wakeAt(at: number): void {
    if (this.#timerAt === at) return;
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = this.runtime.clock.setTimer(at, () => {
      this.#timerAt = Infinity;
      this.#step();
    });
  }
}

const answeredTooLate = (): LockError =>
  new RedisUnavailableError('the answer came after the lease that was asked for had ended', 'none');

const isUnavailable = (error: LockError): boolean => error instanceof RedisUnavailableError;
