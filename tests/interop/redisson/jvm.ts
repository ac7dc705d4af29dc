import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { reapWithUs, reaped } from '../../support/processes/reaper.js';
import { until } from '../../support/time/until.js';

const JAVA = fileURLToPath(new URL('./java', import.meta.url));

/** The versions of Redisson that are tested: the newest, and the last of the 3.x, for fleets that are not all new. */
export const REDISSON_VERSIONS = ['4.7.0', '3.52.0'] as const;

const VERSION = process.env.HOLDFAST_REDISSON ?? REDISSON_VERSIONS[0];

interface JvmOptions {
  /** By default the one that the run is for. */
  readonly version?: string;
  /** ms by which the clock that Redisson reads is ahead of the machine's. */
  readonly clockAheadMs?: number;
}

export interface JvmObject {
  readonly kind: string;
  readonly name?: string;
  /** Of another client than the call's. */
  readonly client?: string;
  readonly members?: readonly JvmObject[];
  readonly values?: readonly string[];
}

/** Absent options have the defaults of Redisson. */
export interface JvmClientOptions {
  readonly client?: string;
  readonly addresses: readonly string[];
  readonly mode?: 'single' | 'replica' | 'cluster';
  readonly lockWatchdogTimeout?: number;
  readonly fairLockWaitTimeout?: number;
  /** ms for a response. */
  readonly timeout?: number;
  readonly retryAttempts?: number;
  readonly retryDelay?: number;
  readonly keyPrefix?: string;
  readonly subscriptionConnections?: number;
}

export interface Answer<T = unknown> {
  readonly result: T;
  /** By the monotonic clock that is the same for all processes (bench/monotonic.ts). */
  readonly from: number;
  readonly until: number;
}

/** The error of a call in the JVM. */
export class JavaError extends Error {
  constructor(
    readonly className: string,
    override readonly message: string,
    readonly causeText: string | null,
    readonly from: number,
    readonly until: number,
  ) {
    super(message);
    this.name = className.split('.').at(-1) ?? className;
  }
}

interface Line {
  readonly id: number;
  readonly from: number;
  readonly until: number;
  readonly result?: unknown;
  readonly error?: { readonly class: string; readonly message: string | null; readonly cause: string | null };
}

/** A process with the real Redisson. */
export class Jvm {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #exited: Promise<void>;
  readonly #unanswered = new Map<number, { resolve: (line: Line) => void; reject: (error: Error) => void }>();
  #orders = 0;
  #said = '';

  private constructor(
    readonly version: string,
    clockAheadMs: number | undefined,
  ) {
    const built = join(JAVA, 'target', version);
    const worker = join(built, 'worker.jar');
    const clock = clockAheadMs === undefined ? [] : [`-javaagent:${worker}=${clockAheadMs}`];
    const classPath = ['-cp', [worker, join(built, 'lib', '*')].join(':')];
    const flags = ['-Xmx512m', '-XX:+UseSerialGC', ...clock, ...classPath];
    this.#process = spawn('java', [...flags, 'holdfast.interop.Worker']);
    const { pid } = this.#process;
    if (pid !== undefined) reapWithUs(pid);
    this.#process.stderr.on('data', (chunk: Buffer) => (this.#said = (this.#said + chunk.toString()).slice(-8_192)));
    this.#process.stdin.on('error', () => undefined);
    this.#process.on('error', () => undefined);
    createInterface(this.#process.stdout).on('line', (line) => this.#receive(line));
    this.#exited = new Promise((resolve) => {
      this.#process.once('close', (code, signal) => {
        if (pid !== undefined) reaped(pid);
        const said = this.#said && `:\n${this.#said}`;
        for (const { reject } of this.#unanswered.values()) {
          reject(new Error(`the JVM has ended (${signal ?? String(code)})${said}`));
        }
        this.#unanswered.clear();
        resolve();
      });
    });
  }

  static async start({ version = VERSION, clockAheadMs }: JvmOptions = {}): Promise<Jvm> {
    const jvm = new Jvm(version, clockAheadMs);
    await jvm.order({ op: 'info' });
    return jvm;
  }

  get pid(): number {
    return this.#process.pid ?? -1;
  }

  get running(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  /** `thread`: on which it is done; orders of one thread are done one after the other. */
  async order<T = unknown>(order: { op: string; thread?: string } & Record<string, unknown>): Promise<Answer<T>> {
    const id = ++this.#orders;
    const line = await new Promise<Line>((resolve, reject) => {
      this.#unanswered.set(id, { resolve, reject });
      this.#process.stdin.write(`${JSON.stringify({ id, ...order })}\n`);
    });
    const { from, until, result, error } = line;
    if (error) throw new JavaError(error.class, error.message ?? '', error.cause, from, until);
    return { result: result as T, from, until };
  }

  /** Returns Redisson's client id. */
  async createClient(options: JvmClientOptions): Promise<string> {
    return (await this.order<string>({ op: 'createClient', client: 'client', ...options })).result;
  }

  async closeClient(client = 'client'): Promise<void> {
    await this.order({ op: 'closeClient', client });
  }

  thread(name: string, client = 'client'): JvmThread {
    return new JvmThread(this, name, client);
  }

  async kill9(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#exited;
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#process.kill(signal);
  }

  /** Ends it; its clients are not shut down first, only `closeClient` does that. */
  async close(): Promise<void> {
    this.#process.kill('SIGCONT');
    this.#process.stdin.end();
    await this.#exited;
  }

  #receive(text: string): void {
    const line = JSON.parse(text) as Line;
    this.#unanswered.get(line.id)?.resolve(line);
    this.#unanswered.delete(line.id);
  }
}

/** One thread of a JVM: one owner. */
class JvmThread {
  constructor(
    private readonly jvm: Jvm,
    readonly name: string,
    private readonly client: string,
  ) {}

  call<T = unknown>(object: JvmObject, method: string, ...args: unknown[]): Promise<Answer<T>> {
    return this.jvm.order<T>({ op: 'call', thread: this.name, client: this.client, object, method, args });
  }

  /** On the wire. */
  async owner(): Promise<string> {
    return (await this.jvm.order<string>({ op: 'owner', thread: this.name, client: this.client })).result;
  }

  /** Sleeps, in a call that waits, until a message or the end of a lease: it has made its last try before that. */
  async parked(): Promise<void> {
    await until(
      async () => (await this.jvm.order<boolean>({ op: 'parked', thread: this.name })).result,
      `${this.name} waits for a message`,
    );
  }

  async interrupt(): Promise<void> {
    await this.jvm.order({ op: 'interrupt', thread: this.name });
  }
}

/** Arguments of a time in Java. */
export const ms = (time: number): [number, string] => [time, 'MILLISECONDS'];
