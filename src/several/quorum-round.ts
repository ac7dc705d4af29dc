import type { Timer } from '../clock.js';
import { onAbort } from '../waiting/abort-watch.js';
import type { MultiHold } from './joint-hold.js';
import type { SingleHold } from '../holding/single-hold.js';
import {
  ConcurrentContextError,
  LockAbortedError,
  LockLostError,
  LockTimeoutError,
  RedisUnavailableError,
} from '../errors.js';
import { Ask } from './server-vote.js';
import { isAway, noteAnswer, noteAway } from './unresponsive.js';
import { isMisuse, longestDeadline } from './joint-lock.js';
import type { Member } from './members.js';
import type { LockCall } from '../locks/lock-call.js';
import { giveBack } from './multi-lock.js';
import type { Leftovers } from './pending-requests.js';
import type { MemberCall } from '../locks/single-lock.js';

/** Nobody gets to see it; without a reason of its own every abort would make an error with a stack. */
const OVER = 'the round is over';

/**
 * A server that hangs may still have a request of a call before under this context, which has ended without it. And one
 * that has lost its part of a hold around the call leaves a majority to be nested in.
 */
export const isOfOneServer = (error: unknown): boolean =>
  error instanceof ConcurrentContextError || error instanceof LockLostError;

/** What a round is begun with. */
export interface RoundTerms {
  readonly members: readonly [Member, ...Member[]];
  readonly quorum: number;
  readonly call: LockCall;
  readonly owners: () => (member: Member) => string;
  readonly drift: (leaseMs: number) => number;
  /** Of rounds before and of this one. */
  readonly leftovers: Leftovers;
  /** Where to stand in line first, for so many ms, and how many ms each of the others may then take to be free. */
  readonly gate?: { readonly member: Member; readonly waitTime: number; readonly othersMs: number } | undefined;
  /** Who has been asked already, and failed. */
  readonly failed?: { readonly member: Member; readonly error: unknown } | undefined;
}

/**
 * Asks every server, all at once (one that still has a request of a round before as soon as that is over), and decides
 * as soon as the answers allow. What is granted after it has been closed joins the hold that was made of it, or is given
 * back if there is none.
 *
 * With a gate it stands in line there first. The others are asked when the gate grants, or as soon as it is being handed
 * over: right behind the releases of the hold before, instead of a round trip later.
 */
export class QuorumRound {
  readonly #terms: RoundTerms;
  /** Lease clock ms. */
  readonly #begunAt: number;
  #asks: Ask[];
  readonly #gate: Ask | undefined;
  #owner: (member: Member) => string;
  /** A single try ends by itself; a controller and its listeners would cost more than the rest of the bookkeeping. */
  readonly #abortGate: AbortController | undefined;
  #abortOthers: AbortController | undefined;
  /** The gate is being handed over. */
  #coming = false;
  /** The others were asked. */
  #asked = false;
  #decided = false;
  #closed = false;
  #joint: MultiHold | undefined;
  #timer: Timer | undefined;
  /** Lease clock ms at which nobody waits for the others any more. */
  #endsAt = Infinity;
  #unwatch: (() => void) | undefined;
  #goOn: ((round: this) => void) | undefined;

  constructor(terms: RoundTerms) {
    const { members, owners, gate, failed } = terms;
    const { clock } = members[0].inner.runtime;
    this.#terms = terms;
    this.#begunAt = clock.now();
    this.#owner = owners();
    this.#asks = members.map((member) => new Ask(this, member));
    const known = this.#asks.find(({ member }) => member === failed?.member);
    if (known !== undefined) [known.outcome, known.error] = ['failed', failed?.error];
    if (gate === undefined) return;
    this.#gate = this.#asks.find(({ member }) => member === gate.member);
    this.#abortGate = new AbortController();
  }

  get #mayAsk(): boolean {
    return this.#gate === undefined || this.#coming || this.#gate.outcome === 'acquired';
  }

  /** Lease clock ms at which whoever waits for its leftovers does not wait any longer. */
  get settleBy(): number {
    const { members, gate } = this.#terms;
    return this.#begunAt + (gate?.waitTime ?? 0) + longestDeadline(members);
  }

  get asks(): readonly Ask[] {
    return this.#asks;
  }

  /** The gate, if it did not come to asking the others. */
  get stoppedAt(): Ask | undefined {
    return this.#asked ? undefined : this.#gate;
  }

  /** Tells when it is decided: without a gate in anybody's flow. */
  begin(decided: (round: this) => void): void {
    const { call, gate } = this.#terms;
    if (gate === undefined) this.#goOn = decided;
    this.#unwatch = call.signal === undefined ? undefined : onAbort(call.signal, () => this.#end());
    if (gate !== undefined) {
      const { member, waitTime } = gate;
      this.#send(this.#gate as Ask, this.#request(member, waitTime, this.#abortGate?.signal, false));
      void this.#runBehindGate().then(decided);
    } else if (!this.#decided) this.#askOthers();
  }

  async #runBehindGate(): Promise<this> {
    while (!this.#decided) {
      // Here, in the flow of the call: whoever hands over does so in a flow of its own.
      if (this.#mayAsk && !this.#asked) this.#askOthers();
      else await new Promise((goOn) => (this.#goOn = goOn));
    }
    return this;
  }

  #request(member: Member, waitTime: number, signal: AbortSignal | undefined, hurried: boolean): MemberCall {
    const { drift, call } = this.#terms;
    const { leaseTime, context, site } = call;
    return { leaseTime, waitTime, signal, context, site, owner: this.#owner(member), drift, hurried };
  }

  #askOthers(): void {
    const { members, call, gate, leftovers } = this.#terms;
    const waitTime = gate?.othersMs ?? 0;
    const { clock, options } = members[0].inner.runtime;
    this.#asked = true;
    if (waitTime > 0) this.#abortOthers = new AbortController();
    // A server that has not answered an attempt by then counts as away.
    const now = gate === undefined ? this.#begunAt : clock.now();
    this.#timer = clock.setTimer(now + options.attemptMs + waitTime, () => this.#giveUp());
    this.#endsAt = now + options.commandTimeout;
    const signal = this.#abortOthers === undefined ? call.signal : this.#abortOthers.signal;
    for (const ask of this.#asks) {
      if (ask === this.#gate || ask.outcome !== 'pending') continue;
      const request = this.#request(ask.member, waitTime, signal, gate !== undefined);
      if (!leftovers.has(ask.member)) this.#send(ask, request);
      else if (isAway(ask.member)) this.#stillAway(ask);
      else void leftovers.whenOver(ask.member).then(() => this.#sendLater(ask, request));
    }
    this.#look();
  }

  /** It has not answered the request of a round before either. */
  #stillAway(ask: Ask): void {
    noteAway(ask.member);
    ask.outcome = 'failed';
  }

  /** What a round before had asked of it has been answered, or given back. */
  #sendLater(ask: Ask, request: MemberCall): void {
    if (!this.#decided && !ask.dropped) this.#send(ask, request);
  }

  #send(ask: Ask, request: MemberCall): void {
    ask.sent = true;
    this.#terms.leftovers.begin(ask.member);
    ask.waiter = ask.member.takeAsMember(request, ask);
  }

  granted(ask: Ask, hold: SingleHold): void {
    const { member } = ask;
    const { leftovers } = this.#terms;
    noteAnswer(member);
    leftovers.answered(member);
    const joint = ask.dropped ? undefined : this.#joint;
    const wanted = joint !== undefined || (!this.#closed && !ask.dropped);
    if (!wanted) this.#giveBack(member, hold);
    leftovers.end(member);
    if (!wanted) return;
    if (ask.expected) return joint?.arrived(hold, ask.waiter);
    if (joint !== undefined) return joint.join(hold);
    ask.outcome = 'acquired';
    ask.hold = hold;
    this.#look();
  }

  failed(ask: Ask, error: unknown): void {
    const { member } = ask;
    const { leftovers } = this.#terms;
    const recalled = ask.waiter?.recalled;
    if ((recalled?.error ?? error) instanceof RedisUnavailableError) noteAway(member);
    else if (recalled !== undefined || !(error instanceof LockAbortedError)) noteAnswer(member);
    if (error instanceof LockTimeoutError) leftovers.answered(member);
    else if (!(error instanceof LockAbortedError)) leftovers.failed(member, error);
    leftovers.end(member);
    if (ask.expected) this.#joint?.arrived(undefined, ask.waiter);
    if (ask.outcome !== 'pending' || ask.dropped) return;
    ask.outcome = error instanceof LockTimeoutError ? 'busy' : 'failed';
    ask.error = error instanceof LockTimeoutError ? undefined : error;
    this.#look();
  }

  coming(ask: Ask, comes: boolean): void {
    if (ask !== this.#gate || this.#decided) return;
    this.#coming = comes;
    if (comes) this.#goOn?.(this);
    else if (this.#asked) this.#backInLine();
  }

  /** Nobody wants it any more. Until it has been given back its server is not asked anew. */
  #giveBack(member: Member, hold: SingleHold): void {
    const { leftovers } = this.#terms;
    leftovers.begin(member);
    void giveBack([hold], this.settleBy).then(() => leftovers.end(member));
  }

  /** The gate was not handed over after all: what the others have granted goes back. */
  #backInLine(): void {
    this.#asked = false;
    this.#timer?.cancel();
    this.#abortOthers?.abort(OVER);
    this.#owner = this.#terms.owners();
    this.#asks = this.#asks.map((ask) => {
      if (ask === this.#gate) return ask;
      ask.dropped = true;
      if (ask.hold !== undefined) this.#giveBack(ask.member, ask.hold);
      return new Ask(this, ask.member);
    });
  }

  /** Decides, if there is nothing more to wait for. */
  #look(): void {
    if (this.#decided || this.#gate?.outcome === 'pending') return;
    const { quorum } = this.#terms;
    if (this.#asked) {
      const count = { acquired: 0, busy: 0, failed: 0, pending: 0 };
      for (const { outcome } of this.#asks) count[outcome] += 1;
      // Of a minority that is busy and one that has failed nobody can say which of them is in the way.
      const minority = this.#asks.length - quorum;
      const open = count.acquired < quorum && count.busy <= minority && count.failed <= minority;
      const awaited = count.pending > 0 && !this.#isHeldUpByOthers(count.acquired, count.busy);
      if (open && awaited && (count.failed === 0 || this.misuse === undefined)) return;
    } else if (this.#mayAsk) return this.#goOn?.(this);
    this.#decide();
  }

  /**
   * Another owner prevents the majority, and only servers that are known to be unavailable have not answered. Two owners
   * that split the servers would otherwise wait for an unavailable server while each keeps the other one out.
   */
  #isHeldUpByOthers(acquired: number, busy: number): boolean {
    if (busy === 0 || acquired + busy < this.#terms.quorum) return false;
    return this.#asks.every(({ outcome, member }) => outcome !== 'pending' || isAway(member));
  }

  #decide(): void {
    this.#decided = true;
    this.#timer?.cancel();
    this.#unwatch?.();
    this.#goOn?.(this);
  }

  #giveUp(): void {
    for (const { outcome, member } of this.#asks) if (outcome === 'pending') noteAway(member);
    // Where nobody else is in the way, a call that failed would wait for the same answers: they may still grant it.
    const alone = this.#gate?.outcome !== 'pending' && this.#asks.every(({ outcome }) => outcome !== 'busy');
    const { clock } = this.#terms.members[0].inner.runtime;
    if (alone) this.#timer = clock.setTimer(this.#endsAt, () => this.#end());
    else this.#end();
  }

  /** Whoever has not answered has failed. */
  #end(): void {
    if (this.#decided) return;
    for (const ask of this.#asks) if (ask.outcome === 'pending') ask.outcome = 'failed';
    this.#decide();
  }

  /** The call itself was wrong, and would be at every server. */
  get misuse(): unknown {
    if (this.#asks.every(({ error }) => error === undefined)) return undefined;
    const { members, quorum } = this.#terms;
    const wrong = this.asks.flatMap(({ error }) => (isMisuse(error) ? [error] : []));
    const here = wrong.find((error) => !isOfOneServer(error));
    return here ?? (members.length - wrong.length < quorum ? wrong[0] : undefined);
  }

  /** Gives what was granted in time. */
  close(): SingleHold[] {
    this.#closed = true;
    const granted: SingleHold[] = [];
    for (const { hold } of this.#asks) if (hold !== undefined) granted.push(hold);
    return granted;
  }

  /** The hold that what is granted late joins. */
  becomes(joint: MultiHold): void {
    this.#joint = joint;
    for (const ask of this.#asks) {
      if (!ask.sent || ask.outcome !== 'pending' || isAway(ask.member)) continue;
      ask.expected = true;
      joint.expect(ask.waiter);
    }
    if (this.#gate !== undefined) joint.whenReleased(() => this.abandon());
  }

  /** It came to nothing, or is over: requests that are under way want nothing any more. */
  abandon(): void {
    // An aborted request does not report that the server has not answered it.
    for (const { sent, outcome, member } of this.#asks) {
      if (sent && outcome === 'pending' && isAway(member)) noteAway(member);
    }
    this.#abortGate?.abort(OVER);
    this.#abortOthers?.abort(OVER);
  }
}
