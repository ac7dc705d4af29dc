import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { until } from '../time/until.js';
import { reaped, reapWithUs } from './reaper.js';

/** A process that prints lines of JSON. */
export class JsonProcess<Line extends object> {
  readonly lines: Line[] = [];
  readonly #child: ChildProcess;
  #errors = '';
  #code: number | null | undefined;

  constructor(file: string, args: readonly string[], flags: readonly string[] = []) {
    this.#child = spawn(process.execPath, [...flags, file, ...args], {
      env: { ...process.env, NODE_OPTIONS: '' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const { pid } = this.#child;
    if (pid !== undefined) reapWithUs(pid);
    let rest = '';
    this.#child.stdout!.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.lines.push(JSON.parse(line) as Line);
    });
    this.#child.stderr!.on('data', (chunk: Buffer) => (this.#errors += chunk.toString()));
    this.#child.once('close', (code) => {
      if (pid !== undefined) reaped(pid);
      this.#code = code;
    });
  }

  /** The first line that has this field. */
  async line<Name extends string>(name: Name, limitMs?: number): Promise<Extract<Line, Record<Name, unknown>>> {
    const found = (): Line | undefined => this.lines.find((line) => name in line);
    await until(() => found() !== undefined || this.#code !== undefined, `a line with ${name}`, limitMs);
    const line = found();
    if (line === undefined) throw new Error(`the process ended with ${String(this.#code)}:\n${this.#errors}`);
    return line as Extract<Line, Record<Name, unknown>>;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** The exit code, when all output has been read. */
  async ended(): Promise<number | null> {
    if (this.#code === undefined) await once(this.#child, 'close');
    return this.#code ?? null;
  }
}
