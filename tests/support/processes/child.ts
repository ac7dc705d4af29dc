import type { CloseOptions, LockEvents } from 'holdfast';
import { fork, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { HistoryEvent } from '../history/history-events.js';
import { readHistory, stamp } from '../history/history-recorder.mjs';
import { reapWithUs, reaped } from './reaper.js';
import { stopped } from '../servers/servers.js';
import { LONG_MS } from '../time/until.js';
import { WorkerFlow } from './worker-flow.js';
import type { HoldInfo, Load, LoadResult, Order, WorkerClientOptions } from './worker-orders.js';

/** An event of a client, `signal` (a hold's signal has aborted), `unhandledRejection`, `warning`. */
export interface WorkerEvent {
  readonly type: string;
  readonly detail: Record<string, unknown>;
  /** On the clock of `stamp()`. */
  readonly at: number;
}

/** The error of a call in the worker. */
export class WorkerError extends Error {
  readonly code: string | undefined;
  readonly outcome: string | undefined;
  readonly reason: string | undefined;
  readonly result: unknown;
  constructor(described: {
    name: string;
    message: string;
    code?: string;
    outcome?: string;
    reason?: string;
    result?: unknown;
  }) {
    super(described.message);
    this.name = described.name;
    this.code = described.code;
    this.outcome = described.outcome;
    this.reason = described.reason;
    this.result = described.result;
  }
}

export interface WorkerOptions {
  /** In histories and among the holders of a shared counter. */
  name?: string;
  /** Records the lock calls for `history()`. */
  history?: boolean;
  execArgv?: readonly string[];
}

const QUIET_EVENTS: (keyof LockEvents)[] = [
  'leaseLost',
  'renewFailed',
  'releaseFailed',
  'connectionError',
  'clockUnavailable',
];
const WORKER = fileURLToPath(new URL('./worker.mjs', import.meta.url));
let workers = 0;

/** Starts a process with the built package. */
export async function startWorker(options: WorkerOptions = {}): Promise<Worker> {
  const worker = new Worker(options);
  // On a machine that is at its limit a process takes its time to load the package.
  await worker.nextEvent('started', 3 * LONG_MS);
  return worker;
}

type Answer =
  { id: number; value?: unknown; error?: ConstructorParameters<typeof WorkerError>[0] } | { event: WorkerEvent };

export class Worker {
  readonly name: string;
  readonly events: WorkerEvent[] = [];
  readonly #process: ChildProcess;
  readonly #directory: string | undefined;
  readonly #exited: Promise<void>;
  readonly #unanswered = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  #watchers: {
    wanted: (event: WorkerEvent) => boolean;
    resolve: (event: WorkerEvent) => void;
    reject: (error: Error) => void;
  }[] = [];
  /** It is stopped, or about to be. */
  stands = false;
  #orders = 0;
  #said = '';
  #pausedAt: number | undefined;
  #blockedAt: number | undefined;
  readonly #slept: HistoryEvent[] = [];
  #diedAt: number | undefined;
  #historyAtEnd: HistoryEvent[] | undefined;

  constructor({ name = `worker-${++workers}`, history = false, execArgv = [] }: WorkerOptions) {
    this.name = name;
    this.#directory = history ? mkdtempSync(join(tmpdir(), 'holdfast-worker-')) : undefined;
    this.#process = fork(WORKER, [name, ...(this.#directory === undefined ? [] : [this.#file])], {
      execArgv: [...execArgv],
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    const { pid } = this.#process;
    if (pid !== undefined) reapWithUs(pid);
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.on('data', (chunk: Buffer) => (this.#said = (this.#said + chunk.toString()).slice(-8_192)));
    }
    this.#process.on('message', (answer: Answer) => this.#receive(answer));
    this.#exited = new Promise((resolve) => {
      this.#process.once('close', (code, signal) => {
        if (pid !== undefined) reaped(pid);
        this.#gone(new Error(`${name} has ended (${signal ?? String(code)})${this.#said && `:\n${this.#said}`}`));
        resolve();
      });
    });
  }

  get pid(): number {
    return this.#process.pid ?? -1;
  }

  get running(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  order(order: Order): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (!this.#process.connected) return reject(new Error(`${this.name} has ended`));
      const id = ++this.#orders;
      this.#unanswered.set(id, { resolve, reject });
      this.#process.send({ id, ...order });
    });
  }

  /** Returns the client's id. `events`: the events to report besides losses and failures. */
  async createClient(
    options: WorkerClientOptions,
    client = 'client',
    events: (keyof LockEvents)[] = [],
  ): Promise<string> {
    const told = [...new Set([...QUIET_EVENTS, ...events])];
    return (await this.order({ do: 'createClient', client, options, events: told })) as string;
  }

  async closeClient(options?: CloseOptions, client = 'client'): Promise<void> {
    await this.order({ do: 'closeClient', client, options });
  }

  /**
   * A flow of the worker: one async function that does its steps in their order. It is there from its first step on.
   */
  flow(name: string, client = 'client'): WorkerFlow {
    return new WorkerFlow(
      (step) => this.order({ do: 'step', client, flow: name, step }),
      (child) => this.flow(child, client),
    );
  }

  async hold(hold: string): Promise<HoldInfo> {
    return (await this.order({ do: 'hold', hold })) as HoldInfo;
  }

  /** Fires the signal that options name. */
  async abort(signal: string, reason?: unknown): Promise<void> {
    await this.order({ do: 'abort', signal, reason });
  }

  /** Blocks the event loop, and replies when the block has ended. */
  async block(ms: number): Promise<{ from: number; until: number }> {
    this.#blockedAt = stamp();
    const blocked = (await this.order({ do: 'block', ms })) as { from: number; until: number };
    this.#blockedAt = undefined;
    return blocked;
  }

  /** Sets the wall clock that the worker sees: forward, or back if negative. */
  async setClock(ms: number): Promise<void> {
    await this.order({ do: 'setClock', ms });
  }

  /**
   * Simulates a sleep of the machine: the process and its monotonic clock stop, while the wall clock and all other
   * processes continue. Returns how far its clocks have moved, as the process sees them.
   */
  async sleep(ms: number): Promise<{ wallMs: number; monotonicMs: number }> {
    this.stands = true;
    const awake = this.order({ do: 'sleep' }) as Promise<{ wallMs: number; monotonicMs: number }>;
    // Killed instead, it neither stands nor answers.
    await Promise.race([stopped(this.pid), awake]);
    const from = stamp();
    this.#pausedAt = from;
    await new Promise((over) => setTimeout(over, ms));
    this.resume();
    this.#slept.push({ type: 'slept', from, at: stamp(), process: this.name });
    return awake;
  }

  async contend(load: Omit<Load, 'client'> & { client?: string }): Promise<LoadResult> {
    return (await this.order({ do: 'contend', client: 'client', ...load })) as LoadResult;
  }

  /** Runs the export `run` of a module in the worker (with `--import tsx` among `execArgv` it may be TypeScript). */
  run(module: URL, options: unknown): Promise<unknown> {
    return this.order({ do: 'run', module: module.href, options });
  }

  async stopContending(): Promise<void> {
    await this.order({ do: 'stopContending' });
  }

  /**
   * The heap after a collection (with `--expose-gc` among `execArgv`), and the resources that keep the process alive.
   */
  async resources(): Promise<{ heapUsed: number; active: string[] }> {
    return (await this.order({ do: 'resources' })) as { heapUsed: number; active: string[] };
  }

  /** The first event that matches, of those that have come or will come. */
  nextEvent(wanted: string | ((event: WorkerEvent) => boolean), limitMs = LONG_MS): Promise<WorkerEvent> {
    const matches = typeof wanted === 'function' ? wanted : (event: WorkerEvent) => event.type === wanted;
    const already = this.events.find(matches);
    if (already) return Promise.resolve(already);
    return new Promise((resolve, reject) => {
      const limit = setTimeout(() => reject(new Error(`${this.name} did not report ${String(wanted)}`)), limitMs);
      const settle =
        <T>(then: (value: T) => void) =>
        (value: T): void => {
          clearTimeout(limit);
          then(value);
        };
      this.#watchers.push({ wanted: matches, resolve: settle(resolve), reject: settle(reject) });
    });
  }

  async pause(): Promise<void> {
    this.stands = true;
    this.#process.kill('SIGSTOP');
    await stopped(this.pid);
    this.#pausedAt = stamp();
  }

  resume(): void {
    this.stands = false;
    this.#pausedAt = undefined;
    this.#process.kill('SIGCONT');
  }

  async kill9(): Promise<void> {
    // A stopped process, or one with a blocked event loop, does nothing.
    if (this.running) this.#diedAt = this.#pausedAt ?? this.#blockedAt ?? stamp();
    this.#process.kill('SIGKILL');
    await this.#exited;
  }

  /** Closes the clients of the process and ends it. A process that does not end within the limit is killed. */
  async close(limitMs = LONG_MS): Promise<void> {
    if (this.running) {
      const limit = setTimeout(() => this.#process.kill('SIGKILL'), limitMs);
      this.resume();
      await this.order({ do: 'exit' }).catch(() => undefined);
      await this.#exited;
      clearTimeout(limit);
    }
    if (this.#directory !== undefined) {
      this.#historyAtEnd ??= this.history();
      rmSync(this.#directory, { recursive: true, force: true });
    }
  }

  /** The events of the process so far, with its death if it was killed. */
  history(): HistoryEvent[] {
    if (this.#historyAtEnd) return this.#historyAtEnd;
    const events = [...readHistory([this.#file]), ...this.#slept];
    if (this.#diedAt !== undefined) events.push({ type: 'died', at: this.#diedAt, process: this.name });
    return events;
  }

  get #file(): string {
    if (this.#directory === undefined) throw new Error('the worker was started without history');
    return join(this.#directory, 'history.jsonl');
  }

  #receive(answer: Answer): void {
    if ('event' in answer) {
      this.events.push(answer.event);
      const served = this.#watchers.filter(({ wanted }) => wanted(answer.event));
      this.#watchers = this.#watchers.filter((watcher) => !served.includes(watcher));
      for (const { resolve } of served) resolve(answer.event);
      return;
    }
    const order = this.#unanswered.get(answer.id);
    this.#unanswered.delete(answer.id);
    if (answer.error) order?.reject(new WorkerError(answer.error));
    else order?.resolve(answer.value);
  }

  #gone(error: Error): void {
    for (const { reject } of this.#unanswered.values()) reject(error);
    this.#unanswered.clear();
    for (const { reject } of this.#watchers.splice(0)) reject(error);
  }
}
