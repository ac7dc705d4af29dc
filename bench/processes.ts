import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Tasks } from './worker.js';

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url));

type Answer = { readonly value: unknown } | { readonly error: string };

/** A process of its own for a measurement, so that none inherits another's heap, hooks or optimised code. */
export class Worker implements AsyncDisposable {
  readonly #child: ChildProcess;
  #settle: ((answer: Answer) => void) | undefined;

  constructor() {
    this.#child = fork(WORKER, { serialization: 'advanced' });
    this.#child.on('message', (answer: Answer) => this.#answered(answer));
    this.#child.once('exit', (code, signal) => {
      this.#answered({ error: `a worker ended with ${signal ?? code ?? 'nothing to say'}` });
    });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** Has the worker run a task; one at a time. */
  async run<Name extends keyof Tasks>(
    name: Name,
    ...params: Parameters<Tasks[Name]>
  ): Promise<Awaited<ReturnType<Tasks[Name]>>> {
    const answer = await new Promise<Answer>((resolve) => {
      this.#settle = resolve;
      this.#child.send({ name, params });
    });
    if ('error' in answer) throw new Error(answer.error);
    return answer.value as Awaited<ReturnType<Tasks[Name]>>;
  }

  #answered(answer: Answer): void {
    const settle = this.#settle;
    this.#settle = undefined;
    settle?.(answer);
  }

  /** Whatever it still waits for or holds ends with it. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.send({ name: 'end', params: [] });
    await exited;
  }
}

export async function withWorkers<T>(count: number, fn: (workers: Worker[]) => Promise<T>): Promise<T> {
  const workers = Array.from({ length: count }, () => new Worker());
  try {
    return await fn(workers);
  } finally {
    await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()));
  }
}
