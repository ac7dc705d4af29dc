import { acquire } from '../../../src/waiting/acquire.js';
import { runOutside } from '../../../src/ownership/flow.js';
import { SingleHold, singleHold } from '../../../src/holding/single-hold.js';
import type { HoldRecord } from '../../../src/holding/hold-record.js';
import type { RenewalItem } from '../../../src/protocols/lock-protocol.js';
import { waitLimitOf } from '../../../src/waiting/limits/wait-limit.js';
import { LockLostError } from '../../../src/errors.js';
import { SingleLock } from '../../../src/locks/single-lock.js';
import { lockChannel } from '../../../src/redis/keys.js';
import type { ScriptRequest } from '../../../src/redis/requests/script-request.js';
import type { HeldReply } from '../../../src/redis/scripts/replies.js';
import { FakeClock } from '../../support/time/fake-clock.js';
import { Random } from '../../support/random.js';
import { FakeClient, TERMS, type Watcher } from './fake-client.js';
import { CALM, FakeSubscribers, type Sender, type Weather } from './fake-network.js';
import { FakeServer, STRANGER, type Change } from './fake-server.js';
import { Violation, type Invariant } from './invariants.js';

/** One event. Numbers select from the existing objects at that time. */
export type Step =
  | { readonly do: 'acquire'; client: number; lock: number; wait: number; lease: number | undefined }
  | { readonly do: 'nest'; hold: number; wait: number; lease: number | undefined }
  | { readonly do: 'release'; hold: number }
  | { readonly do: 'extend'; hold: number; lease: number }
  | { readonly do: 'abort'; call: number }
  | { readonly do: 'force'; client: number; lock: number }
  | { readonly do: 'rob'; lock: number }
  | { readonly do: 'stranger'; lock: number; lease: number }
  | { readonly do: 'pass'; ms: number }
  | { readonly do: 'block'; ms: number }
  | { readonly do: 'jump'; ms: number }
  | { readonly do: 'weather'; client: number; weather: Weather }
  | { readonly do: 'away'; client: number; ms: number }
  | { readonly do: 'cut'; client: number; ms: number }
  | { readonly do: 'flush' };

class Call implements Sender {
  failed = false;
  sent = 0;
  settled = false;
  readonly controller = new AbortController();

  constructor(
    readonly what: string,
    /** Monotonic ms by which it must have settled. */
    public limit: number,
  ) {}

  noteSent(): void {
    this.sent += 1;
  }
}

interface Held {
  readonly client: FakeClient;
  readonly hold: SingleHold;
  readonly record: HoldRecord;
  releasing: boolean;
  signals: number;
}

const CLIENTS = 2;
/** Timers are whole milliseconds, and some follow one another. */
const SLACK_MS = 20;
/** The longest pause of a head with failing tries, or of a compensation, plus the next request. */
const QUIET_MS = { wake: 1_300, release: 6_000, leases: 25_000, settle: 60_000 };
/** A message, a yield and a try. */
const WAKE_MS = 150;

/** Clients, a server and a network, all in memory and on one clock; every step is followed by a look at all of it. */
export class World implements Watcher {
  readonly clock = new FakeClock();
  readonly server: FakeServer;
  readonly clients: FakeClient[];
  readonly #subscribers = new FakeSubscribers(lockChannel);
  readonly #names: string[];
  readonly #calls: Call[] = [];
  readonly #held: Held[] = [];
  /** Owners that Redis ever had. */
  readonly #hadIt = new Set<string>();
  /** Owners whose field was removed by an outside client: their holds cannot know it before their deadline. */
  readonly #robbed = new Set<string>();
  readonly #lossesTold = new Map<string, number>();
  /** Of each owner: how many of its holds listeners heard of as acquired, and as released or lost. */
  readonly #eventsOf = new Map<string, { acquired: number; ended: number }>();
  readonly #counting = new Map<string, ScriptRequest<HeldReply>[]>();
  readonly #streaks = new Map<string, { sections: number; since: number }>();
  /** Locks whose key was removed without a message. */
  readonly #freedInSilence = new Set<string>();
  readonly #asleepSince = new Map<string, number>();
  /** Time at which the last storm had ended and the last connection was restored. */
  #fairSince = 0;
  #upSince = 0;
  #violation: Violation | undefined;
  #sender: Sender | undefined;

  constructor(luck: number, locks: number) {
    const random = new Random('luck', String(luck));
    this.#names = Array.from({ length: locks }, (_, i) => `lock ${i}`);
    this.server = new FakeServer(this.clock, this.#subscribers, (change) => this.#changed(change));
    this.clients = Array.from({ length: CLIENTS }, (_, i) => {
      const deliver = (run: () => unknown, sender: Sender | undefined): unknown => {
        this.#sender = sender;
        try {
          return run();
        } finally {
          this.#sender = undefined;
        }
      };
      const client = new FakeClient(`c${i}`, this.clock, this.server, random, this, deliver);
      this.#subscribers.all.push(client.subscriber);
      client.events.on('leaseLost', ({ owner }) => {
        this.#lossesTold.set(owner, (this.#lossesTold.get(owner) ?? 0) + 1);
      });
      for (const type of ['acquired', 'released', 'leaseLost'] as const) {
        client.events.on(type, ({ owner }) => this.#heard(owner, type === 'acquired'));
      }
      return client;
    });
  }

  get now(): number {
    return this.clock.monotonic();
  }

  async play(steps: readonly Step[]): Promise<void> {
    for (const step of steps) {
      this.#act(step);
      // The promises that a step resolves, and due timers, are part of the step.
      await this.#pass(step.do === 'pass' ? step.ms : 0);
    }
    await this.#settle();
  }

  /** Counts the grants, to see whether a schedule had an effect. */
  get granted(): number {
    return this.#held.length;
  }

  #act(step: Step): void {
    const open = this.#held.filter(({ releasing }) => !releasing);
    const picked = <T>(from: readonly T[], index: number): T | undefined => from[index % Math.max(1, from.length)];
    const client = 'client' in step ? picked(this.clients, step.client)! : this.clients[0]!;
    const name = 'lock' in step ? picked(this.#names, step.lock)! : '';
    const held = 'hold' in step ? picked(open, step.hold) : undefined;
    switch (step.do) {
      case 'acquire':
        return runOutside(() => this.#acquire(client, name, step.wait, step.lease));
      case 'nest':
        return held?.hold.run(() => this.#acquire(held.client, held.hold.lockName, step.wait, step.lease));
      case 'release':
        return held && this.#release(held);
      case 'extend':
        return held && this.#watch('extend', held.hold.extend(step.lease), 2 * TERMS.commandTimeout);
      case 'abort':
        return picked(
          this.#calls.filter(({ settled }) => !settled),
          step.call,
        )?.controller.abort();
      case 'force': {
        const lock = new SingleLock(client.mechanisms.locks, client.lock(name, undefined), undefined);
        // Two requests, over and over while others come and go.
        return runOutside(() => this.#watch('force', lock.forceUnlock(), Infinity));
      }
      case 'rob':
        return this.server.rob(name);
      case 'stranger':
        return this.server.stranger(name, step.lease);
      case 'block':
        this.clock.block(step.ms);
        for (const call of this.#calls) call.limit += step.ms;
        this.#upSince = Math.max(this.#upSince, this.now);
        return this.#lookAtHolds('NotBelieved');
      case 'jump':
        this.clock.jumpWall(step.ms);
        // A pending grant may be too late now. Its waiter pauses as it does after a request without a reply.
        this.#upSince = Math.max(this.#upSince, this.now);
        return this.#lookAtHolds('NotAfterJump');
      case 'weather':
        client.connection.weather = step.weather;
        this.#fairSince = this.clients.every(({ connection }) => connection.weather === CALM) ? this.now : Infinity;
        return;
      case 'away':
        client.connection.goAway(step.ms);
        this.#upSince = Math.max(this.#upSince, this.now + step.ms);
        return;
      case 'cut':
        client.subscriber.cut(step.ms);
        this.#upSince = Math.max(this.#upSince, this.now + step.ms);
        return;
      case 'flush':
        return this.server.flushScripts();
      case 'pass':
        return;
    }
  }

  #acquire(client: FakeClient, name: string, wait: number, lease: number | undefined): void {
    const call = new Call(`acquire ${name}`, this.now + wait + 2 * TERMS.commandTimeout + SLACK_MS);
    this.#calls.push(call);
    acquire(
      client.mechanisms.locks,
      {
        protocol: client.lock(name, call),
        terms: {
          leaseMs: lease ?? TERMS.lockWatchdogTimeout,
          watched: lease === undefined,
          byUnlock: false,
          isMember: false,
          askedAt: 0,
          site: undefined,
        },
        limit: waitLimitOf(client.mechanisms.clock, wait, call.controller.signal),
        makeHold: singleHold,
        context: undefined,
      },
      {
        granted: (hold) => {
          this.#settled(call);
          const record = SingleHold.recordOf(hold);
          const signals = hold.signal.aborted ? 1 : 0; // forced open while the answer was on its way
          const held: Held = { client, hold, record, releasing: false, signals };
          hold.signal.addEventListener('abort', () => (held.signals += 1));
          this.#held.push(held);
        },
        failed: () => {
          this.#settled(call);
          call.failed = true;
        },
      },
    );
  }

  #release(held: Held): void {
    held.releasing = true;
    this.#watch('release', held.hold.release(), 2 * TERMS.commandTimeout);
  }

  #watch(what: string, promise: Promise<unknown>, limitMs: number): void {
    const call = new Call(what, this.now + limitMs + SLACK_MS);
    this.#calls.push(call);
    const settled = (): void => this.#settled(call);
    promise.then(settled, settled);
  }

  #settled(call: Call): void {
    if (call.settled) this.#violate('AllSettled', `${call.what} settles twice`);
    call.settled = true;
  }

  async #pass(ms: number): Promise<void> {
    const end = this.now + ms;
    do {
      await this.clock.advance(Math.min(this.clock.nextIn, end - this.now));
      this.#look();
    } while (this.now < end || this.clock.nextIn <= 0);
    if (this.#violation !== undefined) throw this.#violation;
  }

  /** Calm phase: every waiter is granted, every holder releases, and nothing is left. */
  async #settle(): Promise<void> {
    for (const { connection } of this.clients) connection.weather = CALM;
    this.#fairSince = this.now;
    for (const name of this.#names) if (this.server.holder(name)?.owner === STRANGER) this.server.stranger(name, 0);
    const limit = this.now + QUIET_MS.settle;
    while (this.#calls.some(({ settled }) => !settled) || this.#held.some(({ releasing }) => !releasing)) {
      for (const held of this.#held) if (!held.releasing) this.#release(held);
      await this.#pass(20);
      if (this.now > limit) {
        const open = this.#calls.filter(({ settled }) => !settled).map(({ what }) => what);
        throw new Violation('AllSettled', `${open.join(', ')} after ${QUIET_MS.settle} ms of peace`);
      }
    }
    const quiet = this.now + QUIET_MS.release;
    while (this.server.size > 0 && this.now < quiet) await this.#pass(100);
    if (this.server.size > 0) throw new Violation('OrphansEnd', `${this.server.size} keys`);
    // The watchdog's timer stays where the deadline of the last hold was.
    await this.#pass(QUIET_MS.leases);
    this.#checkNothingLeft();
    this.#lookAtLosses();
    this.#lookAtEvents();
    if (this.#violation !== undefined) throw this.#violation;
  }

  #checkNothingLeft(): void {
    const left = this.clients.flatMap(({ id, mechanisms, subscriber, connection }) =>
      Object.entries({
        lines: mechanisms.lines.size,
        renewals: mechanisms.watchdog.size,
        compensations: mechanisms.compensations.size,
        channels: subscriber.size,
        attended: Number(subscriber.attended),
        attempts: connection.pending,
      }).flatMap(([what, count]) => (count === 0 ? [] : [`${id}: ${count} ${what}`])),
    );
    if (this.clock.timers > 0) left.push(`${this.clock.timers} timers`);
    if (left.length > 0) this.#violate('NothingLeft', left.join(', '));
  }

  #heard(owner: string, acquired: boolean): void {
    const events = this.#eventsOf.get(owner) ?? { acquired: 0, ended: 0 };
    this.#eventsOf.set(owner, events);
    if (acquired) events.acquired += 1;
    else events.ended += 1;
    if (events.ended > events.acquired) this.#violate('EventsAddUp', `${owner} ends a hold that was never acquired`);
  }

  #lookAtEvents(): void {
    const granted = new Map<string, number>();
    for (const { hold } of this.#held) granted.set(hold.owner, (granted.get(hold.owner) ?? 0) + 1);
    for (const owner of new Set([...granted.keys(), ...this.#eventsOf.keys()])) {
      const { acquired, ended } = this.#eventsOf.get(owner) ?? { acquired: 0, ended: 0 };
      const holds = granted.get(owner) ?? 0;
      if (acquired === holds && ended === holds) continue;
      this.#violate('EventsAddUp', `${owner} had ${holds} holds: ${acquired} acquired, ${ended} released or lost`);
    }
  }

  #lookAtLosses(): void {
    const lost = new Map<string, number>();
    for (const { hold, record, signals } of this.#held) {
      const isLost = record.loss instanceof LockLostError;
      if (isLost) lost.set(hold.owner, (lost.get(hold.owner) ?? 0) + 1);
      if (signals !== (isLost ? 1 : 0)) this.#violate('ToldOnce', `${hold.owner} got ${signals} signals`);
    }
    for (const owner of new Set([...lost.keys(), ...this.#lossesTold.keys()])) {
      const [told, holds] = [this.#lossesTold.get(owner) ?? 0, lost.get(owner) ?? 0];
      if (told !== holds) this.#violate('ToldOnce', `${owner} lost ${holds} holds and learned of ${told}`);
    }
  }

  /** Whether the hold's owner may take it for granted that the lock is his. Changes nothing. */
  #counts({ hold, record, releasing, client }: Held): boolean {
    const tenure = SingleHold.tenureOf(hold);
    return (
      !releasing &&
      record.state === 'open' &&
      tenure.state === 'held' &&
      client.mechanisms.clock.now() < tenure.lease.deadline
    );
  }

  #look(): void {
    const inside = new Map<string, string>();
    for (const held of this.#held) {
      const { hold, record, client } = held;
      const tenure = SingleHold.tenureOf(hold);
      if (record.state !== 'open' || tenure.state !== 'held' || this.#robbed.has(hold.owner)) continue;
      const holder = this.server.holder(hold.lockName);
      if (holder?.owner !== hold.owner) {
        this.#violate('ToldInTime', `${hold.owner} still holds ${hold.lockName}, which is ${holder?.owner}'s`);
        continue;
      }
      if (holder.count < tenure.holds.length) {
        this.#violate('AllCounted', `${hold.owner} has ${tenure.holds.length} holds, in Redis ${holder.count}`);
      }
      if (!this.#counts(held)) continue;
      const leftMs = tenure.lease.deadline - client.mechanisms.clock.now();
      if (holder.leftMs < leftMs) {
        this.#violate('KeyCovers', `${hold.owner} counts on ${leftMs} ms, the key has ${holder.leftMs}`);
      }
      const other = inside.get(hold.lockName);
      if (other !== undefined && other !== hold.owner) this.#violate('OneInside', `${other} and ${hold.owner}`);
      inside.set(hold.lockName, hold.owner);
    }
    for (const call of this.#calls) {
      if (!call.settled && this.now > call.limit) {
        this.#violate('Bounded', `${call.what} is ${this.now - call.limit} ms over its time`);
        call.limit = Infinity;
      }
    }
    this.#lookForSleepers();
  }

  #lookForSleepers(): void {
    const calm = this.now > Math.max(this.#fairSince, this.#upSince) + QUIET_MS.wake;
    for (const name of this.#names) {
      const free = calm && this.server.holder(name) === undefined && !this.#freedInSilence.has(name);
      for (const { id, mechanisms } of this.clients) {
        const waiter = `a waiter of ${id} for ${name}`;
        const waits = free && mechanisms.lines.line(name, lockChannel(name)).waiterCount > 0;
        if (!waits) this.#asleepSince.delete(waiter);
        else if (!this.#asleepSince.has(waiter)) this.#asleepSince.set(waiter, this.now);
        else if (this.now - this.#asleepSince.get(waiter)! > WAKE_MS) this.#violate('Woken', waiter);
      }
    }
  }

  /** No timer has run since. The state that callers can see must be correct all the same. */
  #lookAtHolds(invariant: 'NotBelieved' | 'NotAfterJump'): void {
    for (const { hold, releasing } of this.#held) {
      const validFor = releasing ? 0 : hold.validFor();
      if (validFor === 0) continue;
      const holder = this.server.holder(hold.lockName);
      const has = holder?.owner === hold.owner || this.#robbed.has(hold.owner);
      if (invariant === 'NotAfterJump' || !has) this.#violate(invariant, `${hold.owner} is valid for ${validFor} ms`);
    }
  }

  #changed({ kind, key, owner, before, after }: Change): void {
    this.#freedInSilence.delete(key);
    if (kind === 'taken' || kind === 'handed') this.#hadIt.add(owner);
    if (kind === 'robbed') {
      this.#robbed.add(owner);
      this.#freedInSilence.add(key);
    }
    // A force unlock, or an outside release of a held lock: the holder did not request it.
    if (kind === 'freed' && this.#sender === undefined) this.#robbed.add(owner);
    if (this.#sender?.failed === true && ['taken', 'kept', 'nested', 'handed'].includes(kind)) {
      this.#violate('NoneLate', `${kind} by ${owner}`);
    }
    if (after < before && ['renewed', 'nested', 'kept'].includes(kind)) this.#violate('KeyCovers', `${kind} shortens`);
    if (kind !== 'handed') this.#streaks.delete(key);
    else this.#streaks.set(key, { sections: (this.#streaks.get(key)?.sections ?? 0) + 1, since: this.now });
    const sections = this.#streaks.get(key)?.sections ?? 0;
    if (sections > TERMS.handOff.maxSections + 1 && this.#subscribers.count(key) > 1) {
      this.#violate('HandOffBound', `${sections} sections in a row`);
    }
  }

  asksWith(owner: string): void {
    if (this.#hadIt.has(owner)) this.#violate('OwnerOnce', owner);
  }

  handsOff(_from: string, to: string): void {
    this.asksWith(to);
  }

  mayCount(owner: string): void {
    for (const { reply, error, doubt } of this.#counting.get(owner) ?? []) {
      const answered = reply !== undefined || error !== undefined;
      if (!answered || (doubt !== undefined && doubt.until >= this.now)) this.#violate('OneAtATime', owner);
    }
  }

  counts(owner: string, request: ScriptRequest<HeldReply>): void {
    this.#counting.set(owner, [...(this.#counting.get(owner) ?? []), request]);
  }

  renews(items: readonly RenewalItem[]): void {
    for (const { owner } of items) {
      const held = this.#held.find(({ hold }) => hold.owner === owner);
      const tenure = held && SingleHold.tenureOf(held.hold);
      if (tenure !== undefined && tenure.state !== 'held') this.#violate('NoRenewalAfter', owner);
    }
  }

  #violate(invariant: Invariant, detail: string): void {
    this.#violation ??= new Violation(invariant, `${detail} at ${this.now} ms`);
  }
}
