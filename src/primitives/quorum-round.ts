import type { Timer } from '../clock.js';
import { onAbort } from '../core/abort-watch.js';
import type { MultiHold } from '../core/multi-hold.js';
import type { SingleHold } from '../core/single-hold.js';
import { ConcurrentContextError, LockTimeoutError, RedisUnavailableError, type ServerResult } from '../errors.js';
import { isAway, noteAnswer, noteAway } from './away-servers.js';
import { isMisuse, type Member } from './joint-lock.js';
import type { LockCall } from './lock-call.js';

/** Nobody gets to see it; without a reason of its own every abort would make an error with a stack. */
const OVER = 'the round is over';

/** One server that was asked. */
export interface Ask {
  readonly member: Member;
  outcome: ServerResult['outcome'] | 'pending';
  hold: SingleHold | undefined;
  error: unknown;
  /** The hold that was made without its answer is told of it. */
  expected?: true;
}

/** What a round is begun with. */
export interface RoundTerms {
  readonly members: readonly [Member, ...Member[]];
  readonly quorum: number;
  readonly call: LockCall;
  /** ms that each server may take to be free. */
  readonly waitTime: number;
  readonly owner: (member: Member) => string;
  readonly drift: (leaseMs: number) => number;
  /** Requests of rounds before that have not been answered, to which those of this one are added. */
  readonly pending: Map<Member, Promise<void>>;
  /** What is held already. */
  readonly has: { readonly member: Member; readonly hold: SingleHold } | undefined;
  /** Who has been asked already, and failed. */
  readonly failed: { readonly member: Member; readonly error: unknown } | undefined;
}

/**
 * Asks every server that has no request of ours under way, all at once, and decides as soon as the answers allow. What
 * is granted after it has been closed joins the hold that was made of it, or is given back if there is none.
 */
export class QuorumRound {
  readonly asks: readonly Ask[];
  readonly #terms: RoundTerms;
  /** A single try ends by itself; a controller and its listeners would cost more than the rest of the bookkeeping. */
  readonly #abort: AbortController | undefined;
  #decided = false;
  #closed = false;
  #joint: MultiHold | undefined;
  #timer: Timer | undefined;
  #unwatch: (() => void) | undefined;
  #decide: (() => void) | undefined;

  constructor(terms: RoundTerms) {
    const { members, has, failed, pending } = terms;
    this.#terms = terms;
    this.#abort = terms.waitTime === 0 ? undefined : new AbortController();
    this.asks = members.map((member): Ask => {
      if (member === has?.member) return { member, outcome: 'acquired', hold: has.hold, error: undefined };
      if (member === failed?.member) return { member, outcome: 'failed', hold: undefined, error: failed.error };
      if (pending.has(member)) return { member, outcome: 'failed', hold: undefined, error: undefined };
      return { member, outcome: 'pending', hold: undefined, error: undefined };
    });
  }

  /** Resolves when it is decided. */
  run(): Promise<void> {
    return new Promise((decide) => {
      this.#decide = decide;
      const { members, call, waitTime } = this.#terms;
      const { clock, options } = members[0].inner.runtime;
      const giveUp = (): void => this.#giveUp();
      // A server that has not answered an attempt by then counts as away, for this round.
      this.#timer = clock.setTimer(clock.now() + options.attemptMs + waitTime, giveUp);
      this.#unwatch = call.signal === undefined ? undefined : onAbort(call.signal, giveUp);
      for (const ask of this.asks) if (ask.outcome === 'pending') this.#send(ask);
      this.#look();
    });
  }

  #send(ask: Ask): void {
    const { call, waitTime, owner, drift, pending, has } = this.#terms;
    const { member } = ask;
    const signal = this.#abort === undefined ? call.signal : this.#abort.signal;
    const request = { ...call, waitTime, signal, owner: owner(member), drift, hurried: has !== undefined };
    const settled = new Promise<void>((done) => {
      member.takeAsMember(request, {
        granted: (hold) => {
          noteAnswer(member);
          done();
          if (ask.expected) return this.#joint?.arrived(hold);
          if (this.#joint !== undefined) return this.#joint.join(hold);
          if (this.#closed) return void hold.release().catch(() => undefined);
          ask.outcome = 'acquired';
          ask.hold = hold;
          this.#look();
        },
        failed: (error) => {
          if (error instanceof RedisUnavailableError) noteAway(member);
          else noteAnswer(member);
          done();
          if (ask.expected) this.#joint?.arrived(undefined);
          if (this.#decided) return;
          ask.outcome = error instanceof LockTimeoutError ? 'busy' : 'failed';
          ask.error = error instanceof LockTimeoutError ? undefined : error;
          this.#look();
        },
      });
    });
    const over = settled.then(() => {
      if (pending.get(member) === over) pending.delete(member);
    });
    pending.set(member, over);
  }

  /** Decides, if there is nothing more to wait for. */
  #look(): void {
    if (this.#decided) return;
    const { asks } = this;
    const { quorum } = this.#terms;
    const acquired = asks.filter(({ outcome }) => outcome === 'acquired').length;
    const pending = asks.filter(({ outcome }) => outcome === 'pending').length;
    const misused = this.misuse !== undefined;
    if (acquired < quorum && acquired + pending >= quorum && !misused) return;
    this.#decided = true;
    this.#timer?.cancel();
    this.#unwatch?.();
    this.#decide?.();
  }

  #giveUp(): void {
    for (const ask of this.asks) {
      if (ask.outcome !== 'pending') continue;
      ask.outcome = 'failed';
      noteAway(ask.member);
    }
    this.#look();
  }

  /** The call itself was wrong, and would be at every server. */
  get misuse(): unknown {
    const { members, quorum } = this.#terms;
    const wrong = this.asks.flatMap(({ error }) => (isMisuse(error) ? [error] : []));
    // A server that hangs may still have a request of a call before under this context, which has ended without it.
    const here = wrong.find((error) => !(error instanceof ConcurrentContextError));
    return here ?? (members.length - wrong.length < quorum ? wrong[0] : undefined);
  }

  /** Gives what was granted in time. */
  close(): SingleHold[] {
    this.#closed = true;
    return this.asks.flatMap(({ hold }) => (hold === undefined ? [] : [hold]));
  }

  /** The hold that what is granted late joins. */
  becomes(joint: MultiHold): void {
    this.#joint = joint;
    for (const ask of this.asks) {
      if (ask.outcome !== 'pending' || isAway(ask.member)) continue;
      ask.expected = true;
      joint.expect(1);
    }
    const abort = this.#abort;
    if (abort !== undefined) joint.whenReleased(() => abort.abort(OVER));
  }

  /** It came to nothing: requests that are under way want nothing any more. */
  abandon(): void {
    this.#abort?.abort(OVER);
  }
}
