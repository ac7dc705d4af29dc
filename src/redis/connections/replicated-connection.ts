/*
 * Grants that replicas have to confirm. WAIT blocks its connection, so these commands have one of their own: what is
 * wanted in one turn is written together and followed by one common WAIT; what is wanted meanwhile goes next.
 *
 *   idle -> scripts, WAIT -> (their answers, the WAIT's answer) -> idle
 */
import type { Redis } from 'ioredis';
import { within, type Clock, type Timer } from '../../clock.js';
import { NotReplicatedError, type LockError } from '../../errors.js';
import type { ReplicaOptions } from '../../options.js';
import type { Attempt, CommandPort } from './attempt.js';
import { CommandConnection, type ConnectionReports } from './command-connection.js';
import { isWithheld, NotSentError, refusal, withoutArguments } from '../server-error.js';

/** How long to believe that a server has no replicas. */
const LOOK_AGAIN_MS = 5_000;

/** Scripts that one WAIT follows. Their grants are held back until it is answered. */
interface Batch {
  readonly held: { readonly attempt: Attempt; readonly raw: unknown }[];
  /** Monotonic ms until which the first of their callers is to be told. */
  settleBy: number;
  overdue: Timer | undefined;
}

export class ReplicatedConnection implements CommandPort {
  readonly #connection: CommandConnection;
  #batch: Batch | undefined;
  /** The WAIT of the last batch has not been answered. */
  #waiting = false;
  readonly #turn = new Set<() => void>();
  /** Undefined: not known. Where acknowledgements were asked for it does not matter. */
  #hasReplicas: boolean | undefined;
  #lookedAt = -Infinity;
  #looking: Promise<void> | undefined;

  /** Private for good: it has the password, and whoever logs a lock would log it, too. */
  readonly #redis: Redis;

  constructor(
    redis: Redis,
    private readonly clock: Clock,
    private readonly attemptMs: number,
    private readonly replicas: ReplicaOptions,
    reports: ConnectionReports,
  ) {
    this.#redis = redis;
    this.#connection = new CommandConnection(redis, clock, attemptMs, reports);
    redis.on('close', () => (this.#hasReplicas = undefined));
  }

  get ready(): boolean {
    return this.#connection.ready && !this.#waiting && (this.replicas.always || this.#knowsReplicas);
  }

  /** One that is connected later counts from then on: whoever comes when nobody has looked for a while looks first. */
  get #knowsReplicas(): boolean {
    if (this.#hasReplicas !== false) return this.#hasReplicas ?? false;
    return this.clock.monotonic() - this.#lookedAt < LOOK_AGAIN_MS;
  }

  get away(): boolean {
    return this.#connection.away;
  }

  async whenReady(until: number): Promise<void> {
    while (!this.ready) {
      await this.#connection.whenReady(until);
      const left = until - this.clock.monotonic();
      if (left <= 0) throw new NotSentError('the server did not say in time whether it has replicas');
      if (this.#waiting) await this.#whenTurn(until);
      else if (!this.replicas.always) await within(this.clock, left, this.#lookForReplicas());
    }
  }

  notAfter(sentAt: number, deadline: number): { text: string; openUntil: number } {
    return this.#connection.notAfter(sentAt, deadline);
  }

  lookAtClock(): Promise<void> {
    return this.#connection.lookAtClock();
  }

  send(name: string, args: string[], attempt: Attempt, asking: boolean): void {
    if (!this.#asksReplicas()) return this.#connection.send(name, args, attempt, asking);
    if (this.#batch === undefined) {
      const batch: Batch = { held: [], settleBy: Infinity, overdue: undefined };
      this.#batch = batch;
      process.nextTick(() => this.#wait(batch));
    }
    this.#batch.settleBy = Math.min(this.#batch.settleBy, attempt.settleBy);
    this.#connection.send(name, args, new HeldAttempt(attempt, this.#batch), asking);
  }

  retire(): void {
    this.#connection.retire();
  }

  close(): void {
    this.#connection.close();
    this.#endTurn();
  }

  #asksReplicas(): boolean {
    if (this.replicas.always) return true;
    // Looked for ahead of time, so that nobody has to wait for it where there are many calls.
    if (!this.#hasReplicas && this.clock.monotonic() - this.#lookedAt > LOOK_AGAIN_MS / 2) void this.#lookForReplicas();
    return this.#hasReplicas ?? false;
  }

  #wait(batch: Batch): void {
    this.#batch = undefined;
    this.#waiting = true;
    const { acks, timeout } = this.replicas;
    const wait = new WaitAttempt(this, this.clock.monotonic(), timeout + this.attemptMs, {
      answered: (confirmed) => void this.#confirm(batch, confirmed),
      failed: (error) => {
        batch.overdue?.cancel();
        this.#endTurn();
        for (const { attempt, raw } of batch.held) {
          // Not answered, or by a server that cannot say (demoted meanwhile, busy): the same request goes out and waits again.
          if (!isWithheld(error))
            attempt.failed(new Error(`WAIT failed: ${error.message}`, { cause: withoutArguments(error) }));
          else if (this.replicas.always) attempt.unconfirmed(refusal('WAIT', error));
          else attempt.answered(raw); // a server that has no WAIT for us: as if it had no replicas
        }
      },
      timedOut: () => this.#connection.reconnect(),
    });
    this.#connection.send('wait', [String(acks), String(timeout)], wait, false);
    // Replicas may be given more time than there is left for a repeated request.
    if (batch.settleBy < wait.deadline) this.#settleInTime(batch);
  }

  #settleInTime(batch: Batch): void {
    batch.overdue = this.clock.setTimer(batch.settleBy - this.clock.monotonic(), () => {
      const now = this.clock.monotonic();
      batch.settleBy = Infinity;
      for (const { attempt } of batch.held) {
        if (attempt.settleBy <= now) attempt.timedOut();
        else batch.settleBy = Math.min(batch.settleBy, attempt.settleBy);
      }
      if (batch.settleBy < Infinity) this.#settleInTime(batch);
    });
  }

  async #confirm(batch: Batch, confirmed: number): Promise<void> {
    const { acks, always } = this.replicas;
    // Too few are enough where there are none, unless they were asked for.
    if (confirmed < acks && !always && batch.held.length > 0) await this.#lookForReplicas();
    batch.overdue?.cancel();
    this.#endTurn();
    const enough = confirmed >= acks || (!always && this.#hasReplicas === false);
    for (const { attempt, raw } of batch.held) {
      if (enough) attempt.answered(raw);
      else attempt.unconfirmed(new NotReplicatedError(acks, confirmed));
    }
  }

  #whenTurn(until: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (): void => {
        timer.cancel();
        this.#turn.delete(onTurn);
      };
      const onTurn = (): void => {
        done();
        resolve();
      };
      const timer = this.clock.setTimer(until - this.clock.monotonic(), () => {
        done();
        reject(new NotSentError('the replicas had not confirmed in time what went before'));
      });
      this.#turn.add(onTurn);
    });
  }

  #endTurn(): void {
    this.#waiting = false;
    for (const next of [...this.#turn]) next();
  }

  #lookForReplicas(): Promise<void> {
    return (this.#looking ??= this.#askForReplicas().finally(() => (this.#looking = undefined)));
  }

  async #askForReplicas(): Promise<void> {
    const askedAt = this.clock.monotonic();
    // Nothing else would notice that the server has fallen silent: no attempt is under way here.
    const limit = this.clock.setTimer(this.attemptMs, () => this.#connection.reconnect());
    try {
      const info = String(await this.#redis.call('info', 'replication'));
      const isMaster = info.includes('role:master');
      // One that is still being filled cannot confirm anything yet. A master of before has left its replicas to another.
      this.#hasReplicas = isMaster ? /^slave\d+:.*\bstate=online\b/m.test(info) : undefined;
      if (!isMaster) this.#connection.reconnect();
    } catch (error) {
      // Withheld: nobody can say, and nobody has asked for any. Else it is cut, or cannot say now: from the start.
      if (isWithheld(error as Error)) this.#hasReplicas = false;
      else this.#connection.reconnect();
    } finally {
      limit.cancel();
      this.#lookedAt = askedAt;
    }
  }
}

/** Keeps a grant back until the replicas have it. */
class HeldAttempt implements Attempt {
  readonly connection: CommandPort;
  readonly sentAt: number;
  readonly deadline: number;
  readonly settleBy: number;
  readonly openUntil: number;
  answersBefore = 0;
  constructor(
    private readonly attempt: Attempt,
    private readonly batch: Batch,
  ) {
    this.connection = attempt.connection;
    this.sentAt = attempt.sentAt;
    this.deadline = attempt.deadline;
    this.settleBy = attempt.settleBy;
    this.openUntil = attempt.openUntil;
  }
  answered(raw: unknown): void {
    if (this.attempt.isGrant(raw)) this.batch.held.push({ attempt: this.attempt, raw });
    else this.attempt.answered(raw);
  }
  failed(error: Error): void {
    this.attempt.failed(error);
  }
  timedOut(): void {
    this.attempt.timedOut();
  }
  isGrant(raw: unknown): boolean {
    return this.attempt.isGrant(raw);
  }
  unconfirmed(error: LockError): void {
    this.attempt.unconfirmed(error);
  }
}

interface WaitEnd {
  answered(confirmed: number): void;
  failed(error: Error): void;
  timedOut(): void;
}

class WaitAttempt implements Attempt {
  readonly deadline: number;
  readonly settleBy = Infinity;
  readonly openUntil = 0;
  answersBefore = 0;
  constructor(
    readonly connection: CommandPort,
    readonly sentAt: number,
    limitMs: number,
    private readonly end: WaitEnd,
  ) {
    this.deadline = sentAt + limitMs;
  }
  answered(raw: unknown): void {
    this.end.answered(Number(raw));
  }
  failed(error: Error): void {
    this.end.failed(error);
  }
  timedOut(): void {
    this.end.timedOut();
  }
  isGrant(): boolean {
    return false;
  }
  unconfirmed(): void {
    // WAIT is what confirms.
  }
}
