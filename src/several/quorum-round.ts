import type { Timer } from '../clock.js';
import { onAbort } from '../waiting/limits/wait-limit.js';
import { currentHolds, runAmong, type FlowHold } from '../ownership/flow.js';
import type { MultiHold } from './joint-hold.js';
import type { SingleHold } from '../holding/single-hold.js';
import { LockAbortedError, LockTimeoutError, RedisUnavailableError } from '../errors.js';
import { longestDeadline } from './joint-lock.js';
import { isMisuse, isOfOneServer } from './member-errors.js';
import type { LockCall } from '../locks/lock-call.js';
import { whileInLine } from './line-check.js';
import type { Member } from './members.js';
import { releaseHolds } from './multi-lock.js';
import type { PendingRequests } from './pending-requests.js';
import { ServerVote } from './server-vote.js';
import { isDown, isUnresponsive, noteAnswer, noteUnanswered, usualReplyMs } from './unresponsive.js';

/** Reason of internal aborts, which no caller sees. Without it each abort would create an error with a stack. */
const OVER = 'the round is over';

/** The parameters of a round. */
export interface RoundTerms {
  readonly members: readonly [Member, ...Member[]];
  readonly quorum: number;
  readonly call: LockCall;
  readonly owners: () => (member: Member) => string;
  readonly drift: (leaseMs: number) => number;
  /** The pending requests of this round and of earlier rounds of the call. */
  readonly requests: PendingRequests;
  /** Whether no further round of the call would follow now: its outcome is that of this round. */
  readonly isLast: () => boolean;
  /**
   * The server in whose line the round waits first, for `waitTime` ms. After its grant, the round waits up to
   * `othersMs` ms for each other server to become free.
   */
  readonly gate?: { readonly member: Member; readonly waitTime: number; readonly othersMs: number } | undefined;
  /** A server whose request has already failed. The round sends it no request. */
  readonly failed?: { readonly member: Member; readonly error: unknown } | undefined;
}

export type GateTerms = Pick<RoundTerms, 'gate' | 'failed'>;

/**
 * Sends requests to all servers at the same time and decides as soon as their replies allow. With a gate, the round
 * first waits in the line of that server, and sends requests to the others when the gate has granted.
 *
 * If a server has a pending request of an earlier round, its new request waits until that one has ended. A grant that
 * arrives after the round was closed joins the hold that the round became. Without such a hold the grant is released.
 */
export class QuorumRound {
  readonly #terms: RoundTerms;
  /** Lease-clock time, in ms. */
  readonly #begunAt: number;
  readonly #votes: readonly ServerVote[];
  readonly #gate: ServerVote | undefined;
  readonly #owner: (member: Member) => string;
  /** Present only with a gate: requests without a gate are single tries, which end on their own. */
  readonly #abort: AbortController | undefined;
  /** `hurrying`: the round waits for missing replies only as long as they usually take. */
  #state: 'at the gate' | 'asking' | 'hurrying' | 'decided' = 'at the gate';
  /** Whether the requests to the servers other than the gate were sent. */
  #asked = false;
  /** Lease-clock time, in ms, of these requests. */
  #askedAt = 0;
  #closed = false;
  /** The holds around the call. */
  #around: readonly FlowHold[] = [];
  #joint: MultiHold | undefined;
  #timer: Timer | undefined;
  /** Lease-clock time, in ms, by which each server should have replied to an attempt. */
  #attemptsEndAt = Infinity;
  /** Lease-clock time, in ms, at which the round stops waiting for the others. */
  #endsAt = Infinity;
  #unwatch: (() => void) | undefined;
  #onDecided: ((round: this) => void) | undefined;
  #gateSettled: (() => void) | undefined;
  /** Ends the check of the server in whose line the round waits. */
  #leaveLine: (() => void) | undefined;

  constructor(terms: RoundTerms) {
    const { members, owners, gate, failed } = terms;
    this.#terms = terms;
    this.#begunAt = members[0].runtime.clock.now();
    this.#owner = owners();
    this.#votes = members.map((member) => new ServerVote(this, member));
    const known = this.#votes.find(({ member }) => member === failed?.member);
    if (known !== undefined) [known.outcome, known.error] = ['failed', failed?.error];
    if (gate === undefined) return;
    this.#gate = this.#votes.find(({ member }) => member === gate.member);
    this.#abort = new AbortController();
  }

  /** Lease-clock time, in ms, until which the call waits for the releases after this round. */
  get settleBy(): number {
    const { members, gate } = this.#terms;
    return this.#begunAt + (gate?.waitTime ?? 0) + longestDeadline(members);
  }

  get votes(): readonly ServerVote[] {
    return this.#votes;
  }

  /** The vote of the gate, if the round ended before it sent requests to the other servers. */
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

  /**
   * Waits for the gate. `await` continues in the flow of the call, while a hand-over settles the gate in the flow of
   * the previous hold.
   */
  async #passGate(gate: ServerVote): Promise<void> {
    await new Promise<void>((settled) => {
      this.#gateSettled = settled;
      this.#send(gate, this.#terms.gate?.waitTime ?? 0);
      // The grant may have come at once.
      if (gate.outcome === 'pending') this.#leaveLine = whileInLine(gate.member, () => this.#gateIsSilent(gate));
    });
    this.#leaveLine?.();
    if (this.#state === 'decided') return;
    if (gate.outcome === 'acquired') this.#askOthers();
    else this.#decide();
  }

  /** The server does not reply any more: end the wait in its line. */
  #gateIsSilent(gate: ServerVote): void {
    if (this.#state !== 'at the gate' || gate.outcome !== 'pending') return;
    gate.outcome = 'failed';
    this.#abort?.abort(OVER);
    this.#gateSettled?.();
  }

  #askOthers(): void {
    const { members, gate, requests } = this.#terms;
    const waitTime = gate?.othersMs ?? 0;
    const { clock, options } = members[0].runtime;
    this.#state = 'asking';
    this.#around = currentHolds();
    this.#asked = true;
    // A server that has not replied to an attempt by then counts as unavailable.
    const now = gate === undefined ? this.#begunAt : clock.now();
    this.#attemptsEndAt = now + options.attemptMs + waitTime;
    this.#timer = clock.setTimer(this.#attemptsEndAt, () => this.#attemptOver());
    this.#endsAt = now + options.commandTimeout;
    this.#askedAt = now;
    for (const vote of this.#votes) {
      if (vote === this.#gate || vote.outcome !== 'pending') continue;
      if (!requests.has(vote.member)) this.#tryFirst(vote, waitTime);
      else if (this.#isAway(vote.member)) this.#stillUnanswered(vote);
      else void requests.whenIdle(vote.member).then(() => this.#sendLater(vote, waitTime));
    }
    this.#look();
  }

  /** The server has not replied to the request of an earlier round: send no further request to it. */
  #stillUnanswered(vote: ServerVote): void {
    noteUnanswered(vote.member, 'slow');
    vote.outcome = 'failed';
  }

  #sendLater(vote: ServerVote, waitTime: number): void {
    if (this.#state !== 'decided') this.#tryFirst(vote, waitTime);
  }

  /**
   * Sends a single try before the round stands in line. The try runs right after a pending release of this client,
   * while the line would let other clients try first.
   */
  #tryFirst(vote: ServerVote, waitTime: number): void {
    // A second request needs a new owner: the client releases unanswered attempts of the first request in the
    // background.
    if (!this.#hasOwnerEach) return this.#send(vote, waitTime);
    vote.waitIfBusyMs = waitTime;
    this.#send(vote, 0);
  }

  /** Whether each request has its own new owner. Members of one client share an owner. */
  get #hasOwnerEach(): boolean {
    const { members } = this.#terms;
    return new Set(members.map(({ runtime }) => runtime)).size === members.length;
  }

  #send(vote: ServerVote, waitTime: number): void {
    const { drift, call, requests } = this.#terms;
    const { leaseTime, renewed, maxHoldTime, context, site } = call;
    const signal = this.#abort === undefined ? call.signal : this.#abort.signal;
    const owner = this.#owner(vote.member);
    vote.sent = true;
    vote.triedAt = waitTime === 0 ? vote.member.runtime.clock.now() : undefined;
    requests.begin(vote.member);
    const hold = { leaseTime, renewed, maxHoldTime, context, site, owner, drift };
    vote.member.takeAsMember({ ...hold, waitTime, signal }, vote);
  }

  granted(vote: ServerVote, hold: SingleHold): void {
    const { member } = vote;
    const { requests } = this.#terms;
    this.#answered(vote);
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

  #answered(vote: ServerVote): void {
    const { member, triedAt } = vote;
    noteAnswer(member, triedAt === undefined ? undefined : member.runtime.clock.now() - triedAt);
    vote.triedAt = undefined;
  }

  failed(vote: ServerVote, error: unknown): void {
    const { member } = vote;
    const { requests } = this.#terms;
    if (error instanceof RedisUnavailableError) noteUnanswered(member, 'attempt over');
    else if (!(error instanceof LockAbortedError)) this.#answered(vote);
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

  /** Releases an unwanted hold. The release is pending for the server, so a new request to it waits. */
  #release(member: Member, hold: SingleHold): void {
    const { requests } = this.#terms;
    requests.begin(member);
    void releaseHolds([hold], this.settleBy).then(() => requests.end(member));
  }

  /** Decides if there is nothing more to wait for. */
  #look(): void {
    if (this.#state === 'at the gate') return this.#gateSettled?.();
    if (this.#state === 'decided') return;
    const { quorum } = this.#terms;
    const count = { acquired: 0, busy: 0, failed: 0, pending: 0 };
    for (const { outcome } of this.#votes) count[outcome] += 1;
    // A minority of busy servers and a minority of failed servers do not show yet which of them prevents the majority.
    const minority = this.#votes.length - quorum;
    const open = count.acquired < quorum && count.busy <= minority && count.failed <= minority;
    const isHeldUp = count.busy > 0 && count.acquired + count.busy >= quorum;
    const awaited = count.pending > 0 && !(isHeldUp && this.#awaitsUnresponsive());
    if (!open || !awaited || (count.failed > 0 && this.misuse !== undefined)) return this.#decide();
    if (isHeldUp) this.#hurry();
  }

  /**
   * Another owner prevents the majority, and waits for this one: wait for the missing replies as long as they usually take.
   * The last round waits as long as for every other reply: without it, a call would answer "busy" although a majority is free.
   */
  #hurry(): void {
    if (this.#state !== 'asking' || this.#terms.isLast()) return;
    this.#state = 'hurrying';
    const { members, gate } = this.#terms;
    const missing = this.#votes
      .filter(({ outcome }) => outcome === 'pending')
      .map(({ member }) => usualReplyMs(member));
    const { clock } = members[0].runtime;
    this.#timer?.cancel();
    const at = this.#askedAt + (gate?.othersMs ?? 0) + Math.max(...missing);
    this.#timer = clock.setTimer(Math.max(at, clock.now()), () => this.#hurryOver());
  }

  #hurryOver(): void {
    if (!this.#terms.isLast()) return this.#attemptOver('slow');
    // The time of the call has passed meanwhile.
    this.#state = 'asking';
    this.#timer = this.#terms.members[0].runtime.clock.setTimer(this.#attemptsEndAt, () => this.#attemptOver());
  }

  /**
   * Whether only unresponsive servers have not replied. Without this check, two owners that split the servers would wait
   * for an unavailable server while each keeps the other one out.
   */
  #awaitsUnresponsive(): boolean {
    return this.#votes.every(({ outcome, member }) => outcome !== 'pending' || this.#isAway(member));
  }

  /** Whether the round does not wait for the server. A server that did not reply in its usual time may only be slow. */
  #isAway(member: Member): boolean {
    return this.#terms.isLast() ? isDown(member) : isUnresponsive(member);
  }

  #decide(): void {
    this.#state = 'decided';
    this.#timer?.cancel();
    this.#leaveLine?.();
    this.#unwatch?.();
    this.#onDecided?.(this);
  }

  #attemptOver(silence: 'slow' | 'attempt over' = 'attempt over'): void {
    for (const { outcome, member, triedAt } of this.#votes)
      if (outcome === 'pending' && triedAt !== undefined) noteUnanswered(member, silence);
    // If no other owner holds a server, wait for the missing replies: they may still grant the lock, and a new round
    // would wait for the same servers.
    const alone = this.#votes.every(({ outcome }) => outcome !== 'busy');
    const { clock } = this.#terms.members[0].runtime;
    if (alone) this.#timer = clock.setTimer(this.#endsAt, () => this.#end());
    else this.#end();
  }

  /** Ends the round. Each server that has not replied counts as failed. */
  #end(): void {
    if (this.#state === 'decided') return;
    for (const vote of this.#votes) if (vote.outcome === 'pending') vote.outcome = 'failed';
    this.#decide();
  }

  /** The error of a call that every server would refuse. */
  get misuse(): unknown {
    if (this.#votes.every(({ error }) => error === undefined)) return undefined;
    const { members, quorum } = this.#terms;
    const wrong = this.#votes.flatMap(({ error }) => (isMisuse(error) ? [error] : []));
    const here = wrong.find((error) => !isOfOneServer(error));
    return here ?? (members.length - wrong.length < quorum ? wrong[0] : undefined);
  }

  /** Closes the round and returns the holds that were granted so far. */
  close(): SingleHold[] {
    this.#closed = true;
    return this.#votes.flatMap(({ hold }) => (hold === undefined ? [] : [hold]));
  }

  /** Adds later grants to `joint`. */
  becomes(joint: MultiHold): void {
    this.#joint = joint;
    if (this.#abort !== undefined) joint.whenReleased(() => this.abandon());
  }

  /** Aborts the requests that wait in a line: the round has no hold, or its hold is being released. */
  abandon(): void {
    // Note missing replies now: an aborted request does not report that its server has not replied.
    for (const { sent, outcome, member } of this.#votes) {
      if (sent && outcome === 'pending' && isUnresponsive(member)) noteUnanswered(member, 'slow');
    }
    this.#abort?.abort(OVER);
  }
}
