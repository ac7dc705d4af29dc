import type { Timer } from '../clock.js';
import { onAbort } from '../abort-watch.js';
import { currentHolds, runAmong, type FlowHold } from '../ownership/flow.js';
import type { MultiHold } from './joint-hold.js';
import type { SingleHold } from '../holding/single-hold.js';
import { LockAbortedError, LockTimeoutError, RedisUnavailableError } from '../errors.js';
import { isMisuse, isOfOneServer, longestDeadline } from './joint-lock.js';
import type { LockCall } from '../locks/lock-call.js';
import type { Member } from './members.js';
import { giveBack } from './multi-lock.js';
import type { PendingRequests } from './pending-requests.js';
import { ServerVote } from './server-vote.js';
import { isUnresponsive, noteAnswer, noteUnanswered } from './unresponsive.js';

/** The reason of an internal abort, which no caller sees: without it each abort would create an error with a stack. */
const OVER = 'the round is over';

/** What a round is begun with. */
export interface RoundTerms {
  readonly members: readonly [Member, ...Member[]];
  readonly quorum: number;
  readonly call: LockCall;
  readonly owners: () => (member: Member) => string;
  readonly drift: (leaseMs: number) => number;
  /** Of earlier rounds of the call and of this one. */
  readonly requests: PendingRequests;
  /** The server to wait at first, for `waitTime` ms. Each other server may then take `othersMs` to become free. */
  readonly gate?: { readonly member: Member; readonly waitTime: number; readonly othersMs: number } | undefined;
  /** A server that has already been asked, and failed. */
  readonly failed?: { readonly member: Member; readonly error: unknown } | undefined;
}

export type GateTerms = Pick<RoundTerms, 'gate' | 'failed'>;

/**
 * Asks all servers at once and decides as soon as the answers allow. With a gate it waits in that server's line first,
 * and asks the others when the gate has granted.
 *
 * A server with a pending request of an earlier round is asked when that request has ended. A grant that comes after the
 * round has been closed joins the hold that was made of the round, or is released if there is none.
 */
export class QuorumRound {
  readonly #terms: RoundTerms;
  /** Lease-clock ms. */
  readonly #begunAt: number;
  readonly #votes: readonly ServerVote[];
  readonly #gate: ServerVote | undefined;
  readonly #owner: (member: Member) => string;
  /** Only with a gate: single tries end without it. */
  readonly #abort: AbortController | undefined;
  #state: 'at the gate' | 'asking' | 'decided' = 'at the gate';
  /** The others were asked. */
  #asked = false;
  #closed = false;
  /** The holds that the call was made in. */
  #around: readonly FlowHold[] = [];
  #joint: MultiHold | undefined;
  #timer: Timer | undefined;
  /** Lease-clock ms at which the round stops waiting for the others. */
  #endsAt = Infinity;
  #unwatch: (() => void) | undefined;
  #onDecided: ((round: this) => void) | undefined;
  #gateSettled: (() => void) | undefined;

  constructor(terms: RoundTerms) {
    const { members, owners, gate, failed } = terms;
    this.#terms = terms;
    this.#begunAt = members[0].inner.runtime.clock.now();
    this.#owner = owners();
    this.#votes = members.map((member) => new ServerVote(this, member));
    const known = this.#votes.find(({ member }) => member === failed?.member);
    if (known !== undefined) [known.outcome, known.error] = ['failed', failed?.error];
    if (gate === undefined) return;
    this.#gate = this.#votes.find(({ member }) => member === gate.member);
    this.#abort = new AbortController();
  }

  /** Lease-clock ms until which a call waits for what it releases after this round. */
  get settleBy(): number {
    const { members, gate } = this.#terms;
    return this.#begunAt + (gate?.waitTime ?? 0) + longestDeadline(members);
  }

  get votes(): readonly ServerVote[] {
    return this.#votes;
  }

  /** The gate, if the round ended there. */
  get stoppedAt(): ServerVote | undefined {
    return this.#asked ? undefined : this.#gate;
  }

  /** Calls `decided` once, outside of the flow of the call. */
  begin(decided: (round: this) => void): void {
    const { signal } = this.#terms.call;
    this.#onDecided = decided;
    this.#unwatch = signal === undefined ? undefined : onAbort(signal, () => this.#end());
    if (this.#state === 'decided') return;
    if (this.#gate === undefined) this.#askOthers();
    else void this.#passGate(this.#gate);
  }

  /** Asks the others in the flow of the call: a hand-over settles the gate in the flow of the hold before. */
  async #passGate(gate: ServerVote): Promise<void> {
    await new Promise<void>((settled) => {
      this.#gateSettled = settled;
      this.#send(gate, this.#terms.gate?.waitTime ?? 0);
    });
    if (this.#state === 'decided') return;
    if (gate.outcome === 'acquired') this.#askOthers();
    else this.#decide();
  }

  #askOthers(): void {
    const { members, gate, requests } = this.#terms;
    const waitTime = gate?.othersMs ?? 0;
    const { clock, options } = members[0].inner.runtime;
    this.#state = 'asking';
    this.#around = currentHolds();
    this.#asked = true;
    // A server that has not answered an attempt by then counts as unavailable.
    const now = gate === undefined ? this.#begunAt : clock.now();
    this.#timer = clock.setTimer(now + options.attemptMs + waitTime, () => this.#attemptOver());
    this.#endsAt = now + options.commandTimeout;
    for (const vote of this.#votes) {
      if (vote === this.#gate || vote.outcome !== 'pending') continue;
      if (!requests.has(vote.member)) this.#tryFirst(vote, waitTime);
      else if (isUnresponsive(vote.member)) this.#stillUnanswered(vote);
      else void requests.whenIdle(vote.member).then(() => this.#sendLater(vote, waitTime));
    }
    this.#look();
  }

  /** The server has not answered the request of an earlier round either. */
  #stillUnanswered(vote: ServerVote): void {
    noteUnanswered(vote.member);
    vote.outcome = 'failed';
  }

  #sendLater(vote: ServerVote, waitTime: number): void {
    if (this.#state !== 'decided') this.#tryFirst(vote, waitTime);
  }

  /** A single try runs right behind a release of this client. In line it would leave others their chance first. */
  #tryFirst(vote: ServerVote, waitTime: number): void {
    // The second request needs an owner of its own: an unanswered attempt of the first one is released in the background.
    if (!this.#hasOwnerEach) return this.#send(vote, waitTime);
    vote.waitIfBusyMs = waitTime;
    this.#send(vote, 0);
  }

  /** Each request has a new owner. Members of one client share one. */
  get #hasOwnerEach(): boolean {
    const { members } = this.#terms;
    return new Set(members.map(({ inner }) => inner.runtime)).size === members.length;
  }

  #send(vote: ServerVote, waitTime: number): void {
    const { drift, call, requests } = this.#terms;
    const { leaseTime, context, site } = call;
    const signal = this.#abort === undefined ? call.signal : this.#abort.signal;
    const owner = this.#owner(vote.member);
    vote.sent = true;
    requests.begin(vote.member);
    vote.member.takeAsMember({ leaseTime, waitTime, signal, context, site, owner, drift }, vote);
  }

  granted(vote: ServerVote, hold: SingleHold): void {
    const { member } = vote;
    const { requests } = this.#terms;
    noteAnswer(member);
    requests.answered(member);
    const wanted = this.#joint !== undefined || !this.#closed;
    if (!wanted) this.#release(member, hold);
    requests.end(member);
    if (!wanted) return;
    if (this.#joint !== undefined) return this.#joint.join(hold);
    vote.outcome = 'acquired';
    vote.hold = hold;
    this.#look();
  }

  failed(vote: ServerVote, error: unknown): void {
    const { member } = vote;
    const { requests } = this.#terms;
    if (error instanceof RedisUnavailableError) noteUnanswered(member);
    else if (!(error instanceof LockAbortedError)) noteAnswer(member);
    if (error instanceof LockTimeoutError) requests.answered(member);
    else if (!(error instanceof LockAbortedError)) requests.failed(member, error);
    requests.end(member);
    if (vote.outcome !== 'pending') return;
    if (error instanceof LockTimeoutError && vote.waitIfBusyMs > 0) {
      const waitTime = vote.waitIfBusyMs;
      vote.waitIfBusyMs = 0;
      // A reply settles the first try outside of the flow of the call.
      return runAmong(this.#around, () => this.#send(vote, waitTime));
    }
    vote.outcome = error instanceof LockTimeoutError ? 'busy' : 'failed';
    vote.error = error instanceof LockTimeoutError ? undefined : error;
    this.#look();
  }

  /** Until the unwanted hold has been released its server is not asked again. */
  #release(member: Member, hold: SingleHold): void {
    const { requests } = this.#terms;
    requests.begin(member);
    void giveBack([hold], this.settleBy).then(() => requests.end(member));
  }

  /** Decides if there is nothing more to wait for. */
  #look(): void {
    if (this.#state === 'at the gate') return this.#gateSettled?.();
    if (this.#state === 'decided') return;
    const { quorum } = this.#terms;
    const count = { acquired: 0, busy: 0, failed: 0, pending: 0 };
    for (const { outcome } of this.#votes) count[outcome] += 1;
    // A busy minority and a failed minority together do not tell which of them prevents the majority.
    const minority = this.#votes.length - quorum;
    const open = count.acquired < quorum && count.busy <= minority && count.failed <= minority;
    const awaited = count.pending > 0 && !this.#isHeldUpByOthers(count.acquired, count.busy);
    if (open && awaited && (count.failed === 0 || this.misuse === undefined)) return;
    this.#decide();
  }

  /**
   * Another owner prevents the majority, and only unresponsive servers have not answered. Two owners that split the
   * servers would otherwise wait for an unavailable server while each keeps the other one out.
   */
  #isHeldUpByOthers(acquired: number, busy: number): boolean {
    if (busy === 0 || acquired + busy < this.#terms.quorum) return false;
    return this.#votes.every(({ outcome, member }) => outcome !== 'pending' || isUnresponsive(member));
  }

  #decide(): void {
    this.#state = 'decided';
    this.#timer?.cancel();
    this.#unwatch?.();
    this.#onDecided?.(this);
  }

  #attemptOver(): void {
    for (const { outcome, member } of this.#votes) if (outcome === 'pending') noteUnanswered(member);
    // A call that failed would wait for the same answers. If no other owner is in the way they may still grant the lock.
    const alone = this.#votes.every(({ outcome }) => outcome !== 'busy');
    const { clock } = this.#terms.members[0].inner.runtime;
    if (alone) this.#timer = clock.setTimer(this.#endsAt, () => this.#end());
    else this.#end();
  }

  /** Each server that has not answered has failed. */
  #end(): void {
    if (this.#state === 'decided') return;
    for (const vote of this.#votes) if (vote.outcome === 'pending') vote.outcome = 'failed';
    this.#decide();
  }

  /** The call itself was wrong, and would be at every server. */
  get misuse(): unknown {
    if (this.#votes.every(({ error }) => error === undefined)) return undefined;
    const { members, quorum } = this.#terms;
    const wrong = this.#votes.flatMap(({ error }) => (isMisuse(error) ? [error] : []));
    const here = wrong.find((error) => !isOfOneServer(error));
    return here ?? (members.length - wrong.length < quorum ? wrong[0] : undefined);
  }

  /** Returns what was granted so far. */
  close(): SingleHold[] {
    this.#closed = true;
    return this.#votes.flatMap(({ hold }) => (hold === undefined ? [] : [hold]));
  }

  /** Grants from now on join `joint`. */
  becomes(joint: MultiHold): void {
    this.#joint = joint;
    if (this.#abort !== undefined) joint.whenReleased(() => this.abandon());
  }

  /** The round came to nothing, or its hold is over: pending requests in a line are aborted. */
  abandon(): void {
    // An aborted request does not report that the server has not answered it.
    for (const { sent, outcome, member } of this.#votes) {
      if (sent && outcome === 'pending' && isUnresponsive(member)) noteUnanswered(member);
    }
    this.#abort?.abort(OVER);
  }
}
