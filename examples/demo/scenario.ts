import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createClient } from 'holdfast';
import { Redis } from 'ioredis';
import type { Run } from './checks.js';
import { stamp, type Command, type FromWorker, type Question, type Report, type WorkerArguments } from './messages.js';
import { Register } from './register.js';
import { Timeline } from './timeline.js';

const ORDERS = ['order:41', 'order:42', 'order:43'];
const WORKERS = ['worker-1', 'worker-2', 'worker-3', 'worker-4'];
const FLOWS = ['a', 'b', 'c'];
const BLOCKED = 'worker-2';
const KILLED = 'worker-3';
const BLOCK = { do: 'block', order: 'order:41', leaseTime: 600, blockFor: 1_200 } as const;
const HOLD = { do: 'hold', order: 'order:42', leaseTime: 1_200 } as const;
/** How long the killed process is inside before. */
const LAST_MOMENTS_MS = 200;
/** An order that the two above leave alone. */
const SABOTAGED = 'order:43';
const SABOTAGE_EVERY_MS = 50;
const LATEST_END_MS = 20_000;

export interface ScenarioOptions {
  readonly redisUrl: string;
  readonly seconds: number;
  readonly seed: string;
  readonly sabotage: boolean;
}

/** Starts the processes, tells them what to do, answers what they ask, and knows at the end what there is to check. */
export class Scenario {
  readonly register = new Register();
  readonly timeline = new Timeline(ORDERS);
  readonly #processes = new Map<string, ChildProcess>();
  readonly #failures: string[] = [];
  #listeners: { worker: string; wanted: (message: FromWorker) => boolean; heard: () => void }[] = [];
  #fail!: (what: string) => void;
  /** Nothing more is to be expected of a run in which a process has failed. */
  readonly #trouble = new Promise<void>((resolve) => {
    this.#fail = (what) => {
      this.#failures.push(what);
      resolve();
    };
  });
  #over = false;
  #killed: string | undefined;
  #blocked: string | undefined;

  constructor(private readonly options: ScenarioOptions) {}

  /** Starts the processes, which then wait for the start of the run. */
  async open(): Promise<void> {
    const ready = WORKERS.map((name) => this.#hears(name, (message) => 'say' in message && message.say === 'ready'));
    for (const name of WORKERS) this.#fork(name);
    await Promise.all(ready);
    this.timeline.begin(stamp(), this.#lastsMs);
  }

  async run(): Promise<Run> {
    const lasts = this.#lastsMs;
    for (const name of WORKERS) this.#command(name, { do: 'start' });
    const acts = Promise.all([
      pause(lasts),
      pause(0.2 * lasts).then(() => this.#killOneInside()),
      pause(0.5 * lasts).then(() => this.#blockOneInside()),
      this.options.sabotage && this.#freeALockUnderItsHolders(),
    ]);
    const latest = setTimeout(() => this.#fail('it did not come to its end'), lasts + LATEST_END_MS);
    await Promise.race([acts, this.#trouble]);
    clearTimeout(latest);
    this.#over = true;
    await this.#stop();

    const { register, timeline } = this;
    const [killed, blocked, failures] = [this.#killed, this.#blocked, this.#failures];
    return { register, timeline, killed, blocked, failures, keysLeft: await this.#keysLeft() };
  }

  /** Leaves no process behind, however the demo ends. */
  kill(): void {
    for (const child of this.#processes.values()) child.kill('SIGKILL');
  }

  get #lastsMs(): number {
    return this.options.seconds * 1_000;
  }

  async #killOneInside(): Promise<void> {
    const inPlace = this.#hears(KILLED, (message) => {
      if (!('say' in message) || message.say !== 'in place') return false;
      this.#killed = message.owner;
      return true;
    });
    this.#command(KILLED, HOLD);
    await inPlace;
    await pause(LAST_MOMENTS_MS);
    const child = this.#processes.get(KILLED)!;
    const exited = once(child, 'exit');
    const at = stamp();
    child.kill('SIGKILL');
    this.#processes.delete(KILLED);
    await exited;
    this.register.died(KILLED, at);
    this.timeline.died(KILLED, at);
    const takenOver = (): boolean =>
      this.register.sections.some(({ order, from }) => order === HOLD.order && from > at);
    while (!takenOver() && !this.#over) await pause(10);
  }

  async #blockOneInside(): Promise<void> {
    const over = this.#hears(
      BLOCKED,
      (message) => 'say' in message && message.say === 'unlocked' && message.owner === this.#blocked,
    );
    this.#command(BLOCKED, BLOCK);
    await over;
  }

  /** Until that has let two in at once, which the checks have to see. */
  async #freeALockUnderItsHolders(): Promise<void> {
    const client = createClient({ url: this.options.redisUrl });
    while (!this.#over && this.register.overlaps().length === 0) {
      await client.getLock(SABOTAGED).forceUnlock();
      await pause(SABOTAGE_EVERY_MS);
    }
    await client.close();
  }

  async #stop(): Promise<void> {
    const children = [...this.#processes];
    const exits = children.flatMap(([, child]) => (child.exitCode === null ? [once(child, 'exit')] : []));
    for (const [name] of children) this.#command(name, { do: 'stop' });
    const late = setTimeout(() => {
      this.#fail('a process did not end');
      this.kill();
    }, LATEST_END_MS);
    await Promise.all(exits);
    clearTimeout(late);
  }

  async #keysLeft(): Promise<number> {
    const redis = new Redis(this.options.redisUrl);
    const keys = await redis.dbsize();
    redis.disconnect();
    return keys;
  }

  #fork(name: string): void {
    const { redisUrl, seed } = this.options;
    const longJobs = name !== BLOCKED && name !== KILLED;
    const given: WorkerArguments = { name, redisUrl, orders: ORDERS, flows: FLOWS, seed, longJobs };
    const child = fork(fileURLToPath(new URL('./worker.ts', import.meta.url)), [JSON.stringify(given)]);
    this.#processes.set(name, child);
    this.timeline.add(name, child.pid ?? 0, FLOWS);
    child.on('message', (message: FromWorker) => this.#receive(name, child, message));
    child.on('exit', (code, signal) => {
      if (code !== 0 && this.#processes.get(name) === child) this.#fail(`${name} ended with ${signal ?? code}`);
    });
  }

  #command(name: string, command: Command): void {
    const child = this.#processes.get(name);
    if (child?.connected) child.send(command);
  }

  #receive(name: string, child: ChildProcess, message: FromWorker): void {
    if ('ask' in message) {
      const value = this.#answer(name, message);
      if (child.connected) child.send({ answers: message.id, value });
    } else {
      if (message.say === 'failed') this.#fail(`${name}: ${message.message}`);
      this.#note(message);
      this.timeline.report(name, message);
    }
    const heard = this.#listeners.filter(({ worker, wanted }) => worker === name && wanted(message));
    this.#listeners = this.#listeners.filter((listener) => !heard.includes(listener));
    for (const listener of heard) listener.heard();
  }

  #answer(name: string, question: Question): number {
    switch (question.ask) {
      case 'enter':
        this.register.enter(name, this.timeline.entered(name, question), question);
        return 0;
      case 'leave':
        this.register.of(question.owner)!.left = question.at;
        return 0;
      case 'read':
        return this.register.read(question.order);
      case 'write':
        this.register.write(question.order, question.value);
        return 0;
      case 'block':
        this.#blocked = question.owner;
        this.timeline.blocked(name, question);
        return 0;
    }
  }

  #note(report: Report): void {
    if (report.say === 'event') {
      const section = report.event === 'leaseLost' ? this.register.of(report.owner) : undefined;
      if (section) section.losses += 1;
      return;
    }
    if (!('owner' in report)) return;
    const section = this.register.of(report.owner);
    if (!section) return;
    switch (report.say) {
      case 'prolonged':
        section.until = report.until;
        break;
      case 'signalled':
        section.signals += 1;
        break;
      case 'unlocked':
        section.unlocked = report.at;
        if (report.code !== undefined) section.unlockCode = report.code;
        break;
      case 'in place':
    }
  }

  #hears(worker: string, wanted: (message: FromWorker) => boolean): Promise<void> {
    return new Promise((heard) => this.#listeners.push({ worker, wanted, heard }));
  }
}
