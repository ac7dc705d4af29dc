/*
 * Sends the commands whose grants replicas must confirm. WAIT blocks its connection, so these commands have a
 * connection of their own. The commands of one turn form a batch: they are written together, and one WAIT follows them.
 * Commands that are requested before the WAIT is answered go into the next batch.
 *
 *   idle -> scripts, WAIT -> (replies to the scripts, reply to WAIT) -> idle
 */
import type { Redis } from 'ioredis';
import { within, type Clock, type Timer } from '../../clock.js';
import { Gate } from '../../gate.js';
import { NotReplicatedError, type LockError } from '../../errors.js';
import type { ReplicaOptions } from '../../options.js';
import type { Attempt, CommandPort } from './attempt.js';
import { CommandConnection, type ConnectionReports } from './command-connection.js';
import { isWithheld, NotSentError, refusal, withoutArguments } from '../server-error.js';
import { MAX_REPLICA_LAG_S, NO_REPLICAS_MS } from '../../timing.js';

/** Scripts that one WAIT follows. Their grants are withheld until Redis replies to the WAIT. */
interface Batch {
  readonly held: { readonly attempt: Attempt; readonly raw: unknown }[];
  /** Monotonic time, in ms, by which the first caller of the batch needs a result. */
  settleBy: number;
  overdue: Timer | undefined;
}

export class ReplicatedConnection implements CommandPort {
  readonly #connection: CommandConnection;
  #batch: Batch | undefined;
  /** The WAIT of the last batch is pending. */
  #waiting = false;
  readonly #batchDone: Gate;
  /** `undefined`: unknown. Not used if the user set `replicas.acks`. */
  #hasReplicas: boolean | undefined;
  #lookedAt = -Infinity;
  #looking: Promise<void> | undefined;

  /** A `#` field: code that logs a lock must not log the password that the connection contains. */
  readonly #redis: Redis;

  constructor(
    redis: Redis,
    private readonly clock: Clock,
    private readonly attemptMs: number,
    private readonly replicas: ReplicaOptions,
    reports: ConnectionReports,
  ) {
    this.#redis = redis;
    this.#batchDone = new Gate(clock);
    this.#connection = new CommandConnection(redis, clock, attemptMs, reports);
    redis.on('close', () => (this.#hasReplicas = undefined));
  }

  get ready(): boolean {
    return this.#connection.ready && !this.#waiting && (this.replicas.always || this.#knowsReplicas);
  }

  get session(): object | undefined {
    return this.#connection.session;
  }

  /** A finding of no replicas is valid for NO_REPLICAS_MS only, because a replica may connect later. */
  get #knowsReplicas(): boolean {
    if (this.#hasReplicas !== false) return this.#hasReplicas ?? false;
    return this.clock.monotonic() - this.#lookedAt < NO_REPLICAS_MS;
  }

  get unavailable(): boolean {
    return this.#connection.unavailable;
  }

  async whenReady(until: number): Promise<void> {
    while (!this.ready) {
      await this.#connection.whenReady(until);
      const left = until - this.clock.monotonic();
      if (left <= 0) throw new NotSentError('the server did not report in time whether it has replicas');
      if (this.#waiting) await this.#whenBatchDone(until);
      else if (!this.replicas.always) await within(this.clock, left, this.#lookForReplicas());
    }
  }

  notAfter(sentAt: number, deadline: number): { text: string; doubtUntil: number } {
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

  whenFlushed(): true | Promise<boolean> {
    return this.#connection.whenFlushed();
  }

  retire(): void {
    this.#connection.retire();
  }

  close(): void {
    this.#connection.close();
    this.#endBatch();
  }

  #asksReplicas(): boolean {
    if (this.replicas.always) return true;
    // Refresh the finding before it becomes invalid, so that under load no call has to wait for it.
    if (!this.#hasReplicas && this.clock.monotonic() - this.#lookedAt > NO_REPLICAS_MS / 2)
      void this.#lookForReplicas();
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
        this.#endBatch();
        for (const { attempt, raw } of batch.held) {
          // Unanswered, or rejected for now (the server was demoted or is busy): the client sends the request and a
          // WAIT again.
          if (!isWithheld(error))
            attempt.failed(new Error(`WAIT failed: ${error.message}`, { cause: withoutArguments(error) }));
          else if (this.replicas.always) attempt.unconfirmed(refusal('WAIT', error));
          else attempt.answered(raw); // WAIT is not available: proceed as with a server without replicas
        }
      },
      timedOut: () => this.#connection.reconnect(),
    });
    this.#connection.send('wait', [String(acks), String(timeout)], wait, false);
    // The time for the replicas may be longer than the rest of the command deadline of a repeated request.
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
    // Without replicas, too few confirmations are enough, unless the user set `replicas.acks`.
    if (confirmed < acks && !always && batch.held.length > 0) await this.#lookForReplicas();
    batch.overdue?.cancel();
    this.#endBatch();
    const enough = confirmed >= acks || (!always && this.#hasReplicas === false);
    for (const { attempt, raw } of batch.held) {
      if (enough) attempt.answered(raw);
      else attempt.unconfirmed(new NotReplicatedError(acks, confirmed));
    }
  }

  #whenBatchDone(until: number): Promise<void> {
    const late = (): Error => new NotSentError('the replicas did not confirm the previous grants in time');
    return this.#batchDone.wait({ until, late, keepsAlive: false });
  }

  #endBatch(): void {
    this.#waiting = false;
    this.#batchDone.open();
  }

  #lookForReplicas(): Promise<void> {
    return (this.#looking ??= this.#askForReplicas().finally(() => (this.#looking = undefined)));
  }

  async #askForReplicas(): Promise<void> {
    const askedAt = this.clock.monotonic();
    // Only this timer detects a silent server: no attempt is pending on this connection.
    const limit = this.clock.setTimer(this.attemptMs, () => this.#connection.reconnect());
    try {
      const info = String(await this.#redis.call('info', 'replication'));
      const isMaster = info.includes('role:master');
      // A demoted master no longer has its replicas.
      this.#hasReplicas = isMaster ? info.split('\n').some(canConfirm) : undefined;
      if (!isMaster) this.#connection.reconnect();
    } catch (error) {
      // If INFO is not available, assume no replicas: the user did not ask for any. After any other error, reconnect.
      if (isWithheld(error as Error)) this.#hasReplicas = false;
      else this.#connection.reconnect();
    } finally {
      limit.cancel();
      this.#lookedAt = askedAt;
    }
  }
}

/**
 * Whether a line of INFO is about a replica that can confirm a grant: not one that still synchronizes, and not one that has
 * told the master nothing for long. A replica that hangs stays `online` until `repl-timeout`.
 */
function canConfirm(line: string): boolean {
  if (!/^slave\d+:.*\bstate=online\b/.test(line)) return false;
  const [, lagS = '0'] = /\blag=(\d+)/.exec(line) ?? [];
  return Number(lagS) <= MAX_REPLICA_LAG_S;
}

/** Withholds a grant until the replicas have confirmed it. */
class HeldAttempt implements Attempt {
  readonly connection: CommandPort;
  readonly sentAt: number;
  readonly deadline: number;
  readonly settleBy: number;
  readonly doubtUntil: number;
  answersBefore = 0;
  constructor(
    private readonly attempt: Attempt,
    private readonly batch: Batch,
  ) {
    this.connection = attempt.connection;
    this.sentAt = attempt.sentAt;
    this.deadline = attempt.deadline;
    this.settleBy = attempt.settleBy;
    this.doubtUntil = attempt.doubtUntil;
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
  readonly doubtUntil = 0;
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
    // Never called: no WAIT follows a WAIT.
  }
}
