import { pause, waitLimitOf, waitTimeLeft, type WaitLimit } from '../waiting/limits/wait-limit.js';
import { currentHolds, runAmong } from '../ownership/flow.js';
import type { LockContext } from '../ownership/lock-context.js';
import type { MultiHold } from './joint-hold.js';
import {
  ClientClosedError,
  InvalidArgumentError,
  LockAbortedError,
  LockLostError,
  LockTimeoutError,
  NoQuorumError,
  type ServerResult,
} from '../errors.js';
import { type ContextOptions } from '../locks/arguments.js';
import { DRIFT } from './drift.js';
import { JointLock } from './joint-lock.js';
import { isMisuse, isOfOneServer } from './member-errors.js';
import type { LockCall, LockSettle } from '../locks/lock-call.js';
import { readFromMajority } from './majority-read.js';
import {
  byIdentity,
  checkMembers,
  contextOf,
  mightHaveToWait,
  namesakesAmong,
  orderedMembers,
  waitedLong,
  whenIdentified,
  type Member,
} from './members.js';
import { releaseHolds } from './multi-lock.js';
import { PendingRequests } from './pending-requests.js';
import { QuorumRound, type GateTerms } from './quorum-round.js';
import type { ServerVote, VoteSummary } from './server-vote.js';
import { isDown, isUnresponsive, noteUnanswered } from './unresponsive.js';
import { pauseAfter } from '../back-off.js';
import { LONG_WAIT_MS, ONE_SERVER_MS, OTHER_SERVERS_MS, OUTAGE_PAUSES, SPLIT_PAUSE_MS } from '../timing.js';

/** Options of `getRedLock()`. */
export interface RedLockOptions extends ContextOptions {
  /**
   * Assumed drift between the servers' clocks, as a fraction of the lease: at least 0 and less than 1. A hold ends this
   * fraction of its lease, plus 2 ms, before the lease does.
   *
   * @defaultValue 0.01
   */
  driftFactor?: number | undefined;
}

const ALL_AT_ONCE: GateTerms = {};
/** The result of a round: a hold of a majority, or the vote of each server. */
type Round = { readonly hold: MultiHold } | { readonly votes: readonly ServerVote[] };

/**
 * A lock that a majority of independent servers grants: Redisson's `RedissonRedLock`. It has one member lock for each
 * server, and each member belongs to a client of its own server.
 *
 * - A call sends its request to all servers at the same time and needs a majority. A server that is down or hangs does
 *   not delay the call. A late grant joins the hold. If the hold has been released, the client releases the late grant.
 * - The hold is valid while a majority of its leases is valid, less the drift of the clocks.
 * - While the lock is busy, waiters stand in line at the first server that replies, and messages wake them. The waiter
 *   that acquires that server sends requests to the others.
 * - The client of each server renews its part. When the majority is lost, or its deadline has passed, the hold is lost
 *   and `hold.signal` aborts. The event `leaseLost` of a client reports its own server only.
 * - `unlock()` releases the lock at all servers that hold it, and resolves when a majority has replied. It rejects with
 *   `LockLostError` if so many parts were lost that no majority was left.
 *
 * The lock survives crashes of a minority of the servers, also crashes that lose the key of the lock. It is not safe if
 * a holder pauses for longer than its lease, or if a clock jumps. See docs/redlock.md.
 *
 * @redisson `RedissonClient#getRedLock(RLock...)`. Differs: all servers at the same time; the drift of the clocks
 * counts.
 */
export class RedLock extends JointLock {
  readonly #driftFactor: number;
  /** The index of each member among the locks that the caller passed. */
  readonly #places: ReadonlyMap<Member, number>;
  readonly #namesakes: readonly Member[];

  /** @internal */
  constructor(locks: readonly unknown[], driftFactor: number, context: LockContext | undefined) {
    const given = checkMembers(locks);
    const members = orderedMembers(given, 'refused');
    super(members, 'red', Math.floor(members.length / 2) + 1, contextOf(given, context));
    this.#driftFactor = driftFactor;
    this.#places = new Map(members.map((member) => [member, locks.indexOf(member)]));
    this.#namesakes = namesakesAmong(members);
  }

  /** @internal */
  protected override takeMembers(call: LockCall, settle: LockSettle): void {
    // In the background: a server that hangs must not delay the call.
    for (const { runtime } of this.#namesakes) void runtime.server.look();
    const unread = this.#namesakes.filter((member) => member.runtime.server.isUnread && !isUnresponsive(member));
    // One server grants an exclusive lock to one of its members only. It grants a read lock to all, and would count twice.
    if (unread.some(({ protocol }) => protocol.concurrent)) void this.#takeKnown(unread, call, settle);
    else this.#take(call, settle);
  }

  /** Takes the members when their servers have told who they are, or do not reply. */
  async #takeKnown(unread: readonly Member[], call: LockCall, settle: LockSettle): Promise<void> {
    await whenIdentified(unread, call);
    if (call.signal?.aborted === true) settle.failed(new LockAbortedError(this.name, call.signal.reason));
    else this.#take(call, settle);
  }

  #take(call: LockCall, settle: LockSettle): void {
    const twice = this.#givenTwice();
    if (twice !== undefined) return settle.failed(twice);
    const { clock } = this.#first.runtime;
    const limit = waitLimitOf(clock, call.waitTime, call.signal);
    const requests = new PendingRequests();
    // If calls of this client want a majority already, stand in line: concurrent rounds would only split the servers.
    let wanted = 0;
    for (const member of this.members) if (mightHaveToWait(member, call.context)) wanted += 1;
    if (limit.kind !== 'one try' && wanted > this.members.length - this.quorum) {
      const gate = this.members.find((member) => !isUnresponsive(member)) ?? this.#first;
      this.#settle(this.#waitAtServers(call, requests, limit, gate), call, requests, settle);
      return;
    }
    // Most calls end with this round, so it uses callbacks: promises would add latency to each of these calls.
    const around = currentHolds();
    this.#round(call, requests, limit, ALL_AT_ONCE).begin((round) => {
      const hold = this.#holdOf(round, call);
      if (hold !== undefined) return settle.granted(hold);
      // Later requests must nest in the holds around the caller, too.
      const later = runAmong(around, () => this.#afterFirst(round, call, requests, limit));
      this.#settle(later, call, requests, settle);
    });
  }

  /** Fails the call only when all its requests have ended: none may take effect after the failure. */
  #settle(taken: Promise<MultiHold>, { signal }: LockCall, requests: PendingRequests, settle: LockSettle): void {
    const failed = async (error: unknown): Promise<void> => {
      await requests.whenAllIdle();
      if (error instanceof NoQuorumError) settle.failed(this.#completed(error, requests));
      else settle.failed(error instanceof LockAbortedError ? new LockAbortedError(this.name, signal?.reason) : error);
    };
    taken.then((hold) => settle.granted(hold), failed);
  }

  async #afterFirst(
    round: QuorumRound,
    call: LockCall,
    requests: PendingRequests,
    limit: WaitLimit,
  ): Promise<MultiHold> {
    const { clock } = this.#first.runtime;
    const votes = await this.#giveUp(round, call);
    if (!this.isServed(call.context)) throw new ClientClosedError();
    const unavailable = this.#unavailable(votes);
    if (waitTimeLeft(limit, clock.now()) <= 0) return this.#timeIsUp(call, requests, limit, votes);
    if (unavailable !== undefined && limit.kind === 'unlimited') throw unavailable;
    return this.#waitAtServers(call, requests, limit, this.#gateAmong(votes), votes);
  }

  /**
   * The time of the call has passed. If a server whose reply no round has waited for might complete a majority, asks all
   * of them once more. Otherwise fails as the newest round of all servers says.
   */
  async #timeIsUp(
    call: LockCall,
    requests: PendingRequests,
    limit: WaitLimit,
    newest: readonly ServerVote[],
  ): Promise<MultiHold> {
    let votes = newest;
    if (limit.kind !== 'one try' && this.#mightBeFree(votes)) {
      const last = await this.#askAll(call, requests, limit);
      if ('hold' in last) return last.hold;
      votes = last.votes;
      if (!this.isServed(call.context)) throw new ClientClosedError();
    }
    const unavailable = votes.length === 0 ? undefined : this.#unavailable(votes);
    throw unavailable ?? new LockTimeoutError(this.name, call.waitTime);
  }

  /** Whether the servers that were not waited for, and those that are not busy, could make a majority. */
  #mightBeFree(votes: readonly ServerVote[]): boolean {
    const acquired = votes.filter(({ outcome }) => outcome === 'acquired').length;
    const silent = votes.filter(
      ({ sent, outcome, error, member }) =>
        (sent && outcome === 'pending') || (outcome === 'failed' && error === undefined && !isDown(member)),
    );
    return acquired < this.quorum && acquired + silent.length >= this.quorum;
  }

  /** The error of a RedLock two of whose servers are one, as far as they have told. */
  #givenTwice(): InvalidArgumentError | undefined {
    const known = this.#namesakes.flatMap(({ protocol, runtime: { server } }) =>
      server.known === undefined ? [] : `${server.known} ${protocol.key}`,
    );
    if (new Set(known).size === known.length) return undefined;
    try {
      orderedMembers(this.members, 'refused', byIdentity);
    } catch (error) {
      if (error instanceof InvalidArgumentError) return error;
      throw error;
    }
    return undefined;
  }

  /** Waits at one server after the other. `newest`: the votes of the newest round of all servers; none before the first. */
  async #waitAtServers(
    call: LockCall,
    requests: PendingRequests,
    limit: WaitLimit,
    first: Member,
    newest: readonly ServerVote[] = [],
  ): Promise<MultiHold> {
    const { clock } = this.#first.runtime;
    const { signal } = call;
    let gate = first;
    let votes = newest;
    let outages = 0;
    let longAt = clock.now() + LONG_WAIT_MS;
    for (;;) {
      // The call stands in each line for less time than what counts as long there.
      if (clock.now() >= longAt) longAt = clock.now() + waitedLong(gate, call.site);
      const through = await this.#throughGate(gate, call, requests, limit);
      // The gate stayed busy, so the newest result of the other servers is that of the previous round.
      if (through === undefined && waitTimeLeft(limit, clock.now()) <= 0)
        return this.#timeIsUp(call, requests, limit, votes);
      const round = through ?? (await this.#askAll(call, requests, limit));
      if ('hold' in round) return round.hold;
      this.#throwIfAborted(signal);
      if (!this.isServed(call.context)) throw new ClientClosedError();
      ({ votes } = round);
      const unavailable = this.#unavailable(votes);
      if (unavailable !== undefined && limit.kind === 'unlimited') throw unavailable;
      gate = this.#gateAmong(votes);
      const { least, most } = SPLIT_PAUSE_MS;
      outages = unavailable === undefined ? 0 : outages + 1;
      const pauseMs = outages === 0 ? least + Math.random() * (most - least) : pauseAfter(OUTAGE_PAUSES, outages);
      const leftMs = waitTimeLeft(limit, clock.now());
      if (leftMs <= 0) return this.#timeIsUp(call, requests, limit, votes);
      await pause(clock, Math.min(pauseMs, leftMs), signal);
      this.#throwIfAborted(signal);
    }
  }

  #throwIfAborted(signal: AbortSignal | undefined): void {
    if (signal?.aborted === true) throw new LockAbortedError(this.name, signal.reason);
  }

  get #first(): Member {
    return this.members[0];
  }

  /** Waits in line at one server, and then sends requests to the others. Returns `undefined` if it stayed busy. */
  async #throughGate(
    gate: Member,
    call: LockCall,
    requests: PendingRequests,
    limit: WaitLimit,
  ): Promise<Round | undefined> {
    const { clock } = this.#first.runtime;
    const waitTime = Math.min(ONE_SERVER_MS, Math.max(1, Math.ceil(waitTimeLeft(limit, clock.now()))));
    const terms = { gate: { member: gate, waitTime, othersMs: OTHER_SERVERS_MS } };
    const round = await this.#run(call, requests, limit, terms);
    const { stoppedAt } = round;
    if (stoppedAt === undefined || call.signal?.aborted === true) return this.#conclude(round, call);
    const { outcome, error } = stoppedAt;
    if (outcome === 'busy') return undefined;
    if (isMisuse(error) && !isOfOneServer(error)) throw error;
    // The server was silent while the call stood in its line. It may only be slow, so the next round asks it as well.
    if (error === undefined && waitTimeLeft(limit, clock.now()) > 0) return this.#askAll(call, requests, limit);
    // The server is unavailable, or has lost its part: send requests to the others.
    if (!(error instanceof LockLostError)) noteUnanswered(gate, error === undefined ? 'slow' : 'attempt over');
    // Start no further round: it could take one more command deadline.
    if (waitTimeLeft(limit, clock.now()) <= 0) return this.#conclude(round, call);
    return this.#askAll(call, requests, limit, { member: gate, error });
  }

  async #askAll(
    call: LockCall,
    requests: PendingRequests,
    limit: WaitLimit,
    failed?: { readonly member: Member; readonly error: unknown },
  ): Promise<Round> {
    return this.#conclude(await this.#run(call, requests, limit, { failed }), call);
  }

  #run(call: LockCall, requests: PendingRequests, limit: WaitLimit, terms: GateTerms): Promise<QuorumRound> {
    return new Promise((decided) => this.#round(call, requests, limit, terms).begin(decided));
  }

  #round(call: LockCall, requests: PendingRequests, limit: WaitLimit, terms: GateTerms): QuorumRound {
    const { members, quorum } = this;
    const owners = (): ((member: Member) => string) => this.owners();
    const isLast = (): boolean => waitTimeLeft(limit, this.#first.runtime.clock.now()) <= 0;
    return new QuorumRound({ members, quorum, call, owners, drift: this.#drift, requests, isLast, ...terms });
  }

  async #conclude(round: QuorumRound, call: LockCall): Promise<Round> {
    const hold = this.#holdOf(round, call);
    return hold === undefined ? { votes: await this.#giveUp(round, call) } : { hold };
  }

  #holdOf(round: QuorumRound, call: LockCall): MultiHold | undefined {
    const granted = round.close();
    if (granted.length < this.quorum || round.misuse !== undefined || call.signal?.aborted === true) return undefined;
    const joint = this.hold(granted, call);
    if (!joint.counts) return undefined;
    round.becomes(joint);
    return joint;
  }

  /** Releases the grants of a round without a majority. */
  async #giveUp(round: QuorumRound, { signal }: LockCall): Promise<readonly ServerVote[]> {
    const { misuse } = round;
    round.abandon();
    await releaseHolds(round.close(), round.settleBy);
    const wrong = misuse ?? this.#givenTwice();
    if (wrong instanceof Error) throw wrong;
    this.#throwIfAborted(signal);
    return round.votes;
  }

  /** Returns the error of a round with too few replies, or `undefined` if another owner prevented the majority. */
  #unavailable(votes: readonly ServerVote[]): Error | undefined {
    // If the busy servers leave no majority, the round ended without waiting for the pending ones.
    const decided = votes.filter(({ outcome }) => outcome === 'busy').length > votes.length - this.quorum;
    const failed = votes.filter(({ outcome }) => outcome === 'failed' || (outcome === 'pending' && !decided));
    const late = votes.filter(({ outcome }) => outcome === 'acquired').length >= this.quorum;
    if (!late && votes.length - failed.length >= this.quorum) return undefined;
    if (failed.length > 0 && failed.every(({ error }) => error instanceof ClientClosedError))
      return new ClientClosedError();
    return this.#noQuorum(votes);
  }

  /** Adds the errors of servers whose replies came after the round was decided. */
  #completed(error: NoQuorumError, requests: PendingRequests): NoQuorumError {
    const results = error.results.map((result): ServerResult => {
      const member = this.members.find((each) => this.#placeOf(each) === result.server) as Member;
      return result.outcome === 'failed' ? { ...result, error: result.error ?? requests.errorOf(member) } : result;
    });
    return new NoQuorumError(this.name, this.quorum, results);
  }

  /**
   * Chooses the server to wait at: the first busy one if another owner may hold a majority. Otherwise several owners
   * have split the servers, and all of them wait at the first server that replied: at different servers, each owner
   * would keep the others out.
   */
  #gateAmong(votes: readonly ServerVote[]): Member {
    const busy = votes.filter(({ outcome }) => outcome === 'busy');
    const gate =
      busy.length >= this.quorum ? busy[0] : votes.find(({ outcome }) => outcome === 'busy' || outcome === 'acquired');
    return gate?.member ?? this.#first;
  }

  readonly #drift = (leaseMs: number): number => leaseMs * this.#driftFactor + DRIFT.leastMs;

  /** @internal A majority has to answer: see {@link readFromMajority}. */
  protected override ask<T, V>(
    question: (member: Member) => Promise<T>,
    meaning: (answers: readonly T[]) => V,
    between?: readonly [T, T],
  ): Promise<V> {
    const { members, quorum } = this;
    const noQuorum = (votes: readonly VoteSummary[]): Error => this.#noQuorum(votes);
    return readFromMajority({ members, quorum, question, meaning, between, noQuorum });
  }

  #placeOf(member: Member): number {
    return this.#places.get(member) as number;
  }

  #noQuorum(votes: readonly VoteSummary[]): NoQuorumError {
    const results = votes.map(({ member, outcome, error }): ServerResult => {
      const said = outcome === 'pending' ? 'failed' : outcome;
      return { server: this.#placeOf(member), lockName: member.name, outcome: said, error };
    });
    results.sort((a, b) => a.server - b.server);
    return new NoQuorumError(this.name, this.quorum, results);
  }
}
