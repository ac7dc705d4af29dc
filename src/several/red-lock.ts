import { onAbort } from '../waiting/abort-watch.js';
import { currentHolds, runAmong } from '../ownership/flow.js';
import type { LockContext } from '../ownership/lock-context.js';
import { LONG_WAIT_MS } from '../waiting/long-wait.js';
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
import type { Ask } from './server-vote.js';
import { isAway, noteAway } from './unresponsive.js';
import { isMisuse, JointLock } from './joint-lock.js';
import { Leftovers } from './pending-requests.js';
import type { LockCall, LockSettle } from '../locks/lock-call.js';
import { askMajority, type Told } from './majority-read.js';
import { checkMembers, contextOf, orderedMembers, type Member } from './members.js';
import { giveBack } from './multi-lock.js';
import { isOfOneServer, QuorumRound, type RoundTerms } from './quorum-round.js';

/** Options of a RedLock's handle. */
export interface RedLockOptions extends ContextOptions {
  /**
   * How far the servers' clocks may drift apart, as a part of the lease; 2 ms are added. A hold counts for so much less
   * than its lease. Default 0.01.
   */
  driftFactor?: number | undefined;
}

const DRIFT = { factor: 0.01, leastMs: 2 };

export function checkDriftFactor(value: unknown): number {
  if (value === undefined) return DRIFT.factor;
  if (typeof value === 'number' && value >= 0 && value < 1) return value;
  throw new InvalidArgumentError('driftFactor', 'a number of at least 0 and less than 1', value);
}

/** Who has the first server waits so long for the others: their last holder's releases may still be on their way. */
const OTHERS_MS = 100;
/** What is held at the server where one stands in line may be a minority that lasts, while a majority comes free. */
const GATE_MS = 2_000;
/** Between rounds that ended without a majority, so that two who split the servers do not do so again. */
const PAUSE_MS = { least: 5, most: 50 };
const AWAY_PAUSE_MS = { first: 100, longest: 1_000 };

type GateTerms = Pick<RoundTerms, 'gate' | 'failed'>;
const ALL_AT_ONCE: GateTerms = {};

/** Of one round: a majority, or what every server said. */
type Round = { readonly hold: MultiHold } | { readonly asks: readonly Ask[] };

/**
 * A lock that a majority of independent servers grants: Redisson's `RedissonRedLock`, one lock at a client of each
 * server.
 *
 * - All servers are asked at once, and a majority is enough: one that is down or hangs delays nobody. What it grants
 *   later joins the hold, or is given back if that is over.
 * - A grant counts for what is left of the lease at a majority, less the drift of the clocks.
 * - While it is busy, those who wait stand in line at the first server that answers, woken by messages; whoever gets in
 *   there asks the others.
 * - Each server's part is renewed by its client. When the majority is gone, or its deadline has passed, the hold is lost:
 *   `hold.signal` aborts. The event `leaseLost` of a client tells of its own server alone.
 * - `unlock()` asks all servers that are held, and ends when a majority has given its part back. If so many parts were
 *   lost that there is none, it rejects with `LockLostError`.
 *
 * It survives servers that crash and lose nothing but the lock's key on a minority of them. It does not make a lock safe
 * against a holder that pauses for longer than its lease, nor against clocks that jump. README, "RedLock".
 *
 * @redisson `RedissonClient#getRedLock(RLock...)`. Differs: servers are asked at once and not one after the other,
 * and the drift counts.
 */
export class RedLock extends JointLock {
  readonly #driftFactor: number;
  /** Where each member was among the locks given. */
  readonly #places: ReadonlyMap<Member, number>;

  /** @internal */
  constructor(locks: readonly unknown[], driftFactor: number, context: LockContext | undefined) {
    const given = checkMembers(locks);
    const members = orderedMembers(given, 'refused');
    super(members, Math.floor(members.length / 2) + 1, contextOf(given, context));
    this.#driftFactor = driftFactor;
    this.#places = new Map(members.map((member) => [member, locks.indexOf(member)]));
  }

  /** @internal */
  protected override takeMembers(call: LockCall, settle: LockSettle): void {
    const { clock } = this.#first.inner.runtime;
    const { context, waitTime } = call;
    const until = waitTime > 0 ? clock.now() + waitTime : -Infinity;
    const leftovers = new Leftovers();
    // Of those who come at the same moment one asks everywhere: they would only split the servers among themselves.
    let wanted = 0;
    for (const member of this.members) if (member.isWanted(context)) wanted += 1;
    if (until !== -Infinity && wanted > this.members.length - this.quorum) {
      const gate = this.members.find((member) => !isAway(member)) ?? this.#first;
      this.#settle(this.#standInLine(call, leftovers, until, gate, undefined), call, leftovers, settle);
      return;
    }
    // Nearly every call ends with this round: promises on the way would cost it more than the bookkeeping.
    const around = currentHolds();
    this.#round(call, leftovers, ALL_AT_ONCE).begin((round) => {
      const hold = this.#holdOf(round, call);
      if (hold !== undefined) return settle.granted(hold);
      // What it asks for later is nested where the caller is, too.
      const later = runAmong(around, () => this.#afterFirst(round, call, leftovers, until));
      this.#settle(later, call, leftovers, settle);
    });
  }

  /** None of its requests may take effect once the call has failed. */
  #settle(taken: Promise<MultiHold>, { signal }: LockCall, leftovers: Leftovers, settle: LockSettle): void {
    taken.then(settle.granted, async (error: unknown) => {
      await leftovers.whenAllOver();
      if (error instanceof NoQuorumError) settle.failed(this.#completed(error, leftovers));
      else settle.failed(error instanceof LockAbortedError ? new LockAbortedError(this.name, signal?.reason) : error);
    });
  }

  async #afterFirst(round: QuorumRound, call: LockCall, leftovers: Leftovers, until: number): Promise<MultiHold> {
    const { clock } = this.#first.inner.runtime;
    const asks = await this.#giveUp(round, call);
    this.checkOpen();
    const away = this.#away(asks);
    if (clock.now() >= until) throw away ?? new LockTimeoutError(this.name, call.waitTime);
    if (away !== undefined && until === Infinity) throw away;
    return this.#standInLine(call, leftovers, until, this.#gateAmong(asks), away);
  }

  /** Waits at one server after the other. `failed`: what the round before came to, if that was an error. */
  async #standInLine(
    call: LockCall,
    leftovers: Leftovers,
    until: number,
    first: Member,
    failed: Error | undefined,
  ): Promise<MultiHold> {
    const { clock } = this.#first.inner.runtime;
    const { waitTime, signal } = call;
    let gate = first;
    let away = failed;
    let awayMs = AWAY_PAUSE_MS.first;
    let longAt = clock.now() + LONG_WAIT_MS;
    for (;;) {
      // The call stands in each line for less time than what counts as long there.
      if (clock.now() >= longAt) longAt = clock.now() + gate.waitedLong(call.site);
      const through = await this.#throughGate(gate, call, leftovers, until);
      // Of the others nothing is known but what they said in the round before.
      if (through === undefined && clock.now() >= until) throw away ?? new LockTimeoutError(this.name, waitTime);
      const round = through ?? (await this.#askAll(call, leftovers));
      if ('hold' in round) return round.hold;
      if (signal?.aborted === true) throw new LockAbortedError(this.name, signal.reason);
      this.checkOpen();
      away = this.#away(round.asks);
      if (away !== undefined && until === Infinity) throw away;
      gate = this.#gateAmong(round.asks);
      const { least, most } = PAUSE_MS;
      const pauseMs = away === undefined ? least + Math.random() * (most - least) : awayMs;
      awayMs = away === undefined ? AWAY_PAUSE_MS.first : Math.min(2 * awayMs, AWAY_PAUSE_MS.longest);
      const now = clock.now();
      if (now >= until) throw away ?? new LockTimeoutError(this.name, waitTime);
      await this.#pause(Math.min(pauseMs, until - now), signal);
    }
  }

  get #first(): Member {
    return this.members[0];
  }

  /** Stands in line at one server, and asks the others from inside. Undefined: it stayed busy there for a while. */
  async #throughGate(gate: Member, call: LockCall, leftovers: Leftovers, until: number): Promise<Round | undefined> {
    const { clock } = this.#first.inner.runtime;
    const waitTime = Math.min(GATE_MS, Math.max(1, Math.ceil(until - clock.now())));
    const terms = { gate: { member: gate, waitTime, othersMs: OTHERS_MS } };
    const round = await this.#run(call, leftovers, terms);
    const { stoppedAt } = round;
    if (stoppedAt === undefined || call.signal?.aborted === true) return this.#conclude(round, call);
    const { outcome, error } = stoppedAt;
    if (outcome === 'busy') return undefined;
    if (isMisuse(error) && !isOfOneServer(error)) throw error;
    // That server is away, or has lost its part. Whoever is next in order takes its place.
    if (!(error instanceof LockLostError)) noteAway(gate);
    // There would be a command deadline more to wait for.
    if (clock.now() >= until) return this.#conclude(round, call);
    return this.#askAll(call, leftovers, { member: gate, error });
  }

  async #askAll(
    call: LockCall,
    leftovers: Leftovers,
    failed?: { readonly member: Member; readonly error: unknown },
  ): Promise<Round> {
    return this.#conclude(await this.#run(call, leftovers, { failed }), call);
  }

  #run(call: LockCall, leftovers: Leftovers, terms: GateTerms): Promise<QuorumRound> {
    return new Promise((decided) => this.#round(call, leftovers, terms).begin(decided));
  }

  #round(call: LockCall, leftovers: Leftovers, terms: GateTerms): QuorumRound {
    const { members, quorum } = this;
    const owners = (): ((member: Member) => string) => this.owners();
    return new QuorumRound({ members, quorum, call, owners, drift: this.#drift, leftovers, ...terms });
  }

  async #conclude(round: QuorumRound, call: LockCall): Promise<Round> {
    const hold = this.#holdOf(round, call);
    return hold === undefined ? { asks: await this.#giveUp(round, call) } : { hold };
  }

  #holdOf(round: QuorumRound, call: LockCall): MultiHold | undefined {
    const granted = round.close();
    if (granted.length < this.quorum || round.misuse !== undefined || call.signal?.aborted === true) return undefined;
    const joint = this.hold(granted, call);
    if (!joint.counts) return undefined;
    round.becomes(joint);
    return joint;
  }

  /** Of a round that came to nothing what it was granted is given back. */
  async #giveUp(round: QuorumRound, { signal }: LockCall): Promise<readonly Ask[]> {
    const { misuse } = round;
    round.abandon();
    await giveBack(round.close(), round.settleBy);
    if (misuse instanceof Error) throw misuse;
    if (signal?.aborted === true) throw new LockAbortedError(this.name, signal.reason);
    return round.asks;
  }

  /** The error of a round in which too few servers answered; undefined: somebody else was in the way. */
  #away(asks: readonly Ask[]): Error | undefined {
    // Where a minority that is busy leaves no majority, the round has not waited for the answers of the others.
    const decided = asks.filter(({ outcome }) => outcome === 'busy').length > asks.length - this.quorum;
    const failed = asks.filter(({ outcome }) => outcome === 'failed' || (outcome === 'pending' && !decided));
    const late = asks.filter(({ outcome }) => outcome === 'acquired').length >= this.quorum;
    if (!late && asks.length - failed.length >= this.quorum) return undefined;
    if (failed.length > 0 && failed.every(({ error }) => error instanceof ClientClosedError))
      return new ClientClosedError();
    return this.#noQuorum(asks);
  }

  /** With what servers said that the round did not wait for. */
  #completed(error: NoQuorumError, leftovers: Leftovers): NoQuorumError {
    const results = error.results.map((result): ServerResult => {
      const member = this.members.find((each) => this.#placeOf(each) === result.server) as Member;
      return result.outcome === 'failed' ? { ...result, error: result.error ?? leftovers.errorOf(member) } : result;
    });
    return new NoQuorumError(this.name, this.quorum, results);
  }

  /**
   * The server to wait at: the first busy one, if another owner may hold a majority. Otherwise several owners have split
   * the servers, and the first server that answered decides between them: at different servers each owner would keep
   * the others out.
   */
  #gateAmong(asks: readonly Ask[]): Member {
    const busy = asks.filter(({ outcome }) => outcome === 'busy');
    const gate =
      busy.length >= this.quorum ? busy[0] : asks.find(({ outcome }) => outcome === 'busy' || outcome === 'acquired');
    return gate?.member ?? this.#first;
  }

  readonly #drift = (leaseMs: number): number => leaseMs * this.#driftFactor + DRIFT.leastMs;

  async #pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const { clock } = this.#first.inner.runtime;
    if (signal?.aborted !== true) {
      await new Promise<void>((resume) => {
        const timer = clock.setTimer(clock.now() + ms, () => over(), true);
        const unwatch = signal === undefined ? undefined : onAbort(signal, () => over());
        const over = (): void => {
          timer.cancel();
          unwatch?.();
          resume();
        };
      });
    }
    if (signal?.aborted === true) throw new LockAbortedError(this.name, signal.reason);
  }

  /**
   * @internal A majority has to answer. With `between` it is enough that the others can change nothing, or have not
   * answered an attempt; without, each server is waited for, up to its command deadline.
   */
  protected override ask<T, V>(
    question: (member: Member) => Promise<T>,
    meaning: (answers: readonly T[]) => V,
    between?: readonly [T, T],
  ): Promise<V> {
    const { members, quorum } = this;
    const noQuorum = (asks: readonly Told[]): Error => this.#noQuorum(asks);
    return askMajority({ members, quorum, question, meaning, between, noQuorum });
  }

  #placeOf(member: Member): number {
    return this.#places.get(member) as number;
  }

  #noQuorum(asks: readonly Told[]): NoQuorumError {
    const results = asks.map(({ member, outcome, error }): ServerResult => {
      const said = outcome === 'pending' ? 'failed' : outcome;
      return { server: this.#placeOf(member), lockName: member.name, outcome: said, error };
    });
    results.sort((a, b) => a.server - b.server);
    return new NoQuorumError(this.name, this.quorum, results);
  }
}
