import { spawn, type ChildProcess } from 'node:child_process';
import { PROJECT_ROOT } from '../project/project-files.js';
import { until } from '../time/until.js';

const COMMAND = `${PROJECT_ROOT}/dist/cli.mjs`;

interface CommandSettings {
  /** The arguments of node that run the program. @defaultValue the command of the package */
  readonly program?: readonly string[];
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Run in a pseudo terminal of so many columns and rows. The output then has both streams. */
  readonly terminal?: { readonly columns: number; readonly rows: number };
}

/** The command `holdfast` of the built package, or another program of node, in a process of its own. */
export class Command {
  out = '';
  err = '';
  readonly ended: Promise<number>;
  readonly #child: ChildProcess;

  constructor(args: readonly string[], { program = [COMMAND], env = {}, terminal }: CommandSettings = {}) {
    const base = {
      ...process.env,
      NODE_OPTIONS: '',
      NO_COLOR: undefined,
      TERM: 'xterm',
      FORCE_COLOR: undefined,
      ...env,
    };
    if (terminal === undefined) {
      this.#child = spawn(process.execPath, [...program, ...args], { env: base });
    } else {
      const quoted = [process.execPath, ...program, ...args]
        .map((arg) => `'${arg.replaceAll("'", `'\\''`)}'`)
        .join(' ');
      const sized = `stty cols ${terminal.columns} rows ${terminal.rows} -echo; exec ${quoted}`;
      this.#child = spawn('script', ['-qec', sized, '/dev/null'], { env: { ...base, SHELL: '/bin/sh' } });
    }
    this.#child.stdout!.setEncoding('utf8').on('data', (text: string) => (this.out += text));
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.err += text));
    this.ended = new Promise((resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('close', (code) => resolve(code ?? -1));
    });
  }

  /** Resolves when the output has this text. */
  async says(text: string | RegExp): Promise<void> {
    await until(
      () => (typeof text === 'string' ? this.out.includes(text) : text.test(this.out)),
      `the command says ${String(text)}`,
      15_000,
    );
  }

  /** Types a text, as on the keyboard. */
  type(text: string): void {
    this.#child.stdin!.write(text);
  }

  interrupt(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP' = 'SIGINT'): void {
    this.#child.kill(signal);
  }

  /** Stops reading what the command prints, as `head` does. */
  closeOutput(): void {
    this.#child.stdout!.destroy();
  }
}

/** Runs the command to its end. */
export async function runCommand(
  args: readonly string[],
  settings?: CommandSettings,
): Promise<{ code: number; out: string; err: string }> {
  const command = new Command(args, settings);
  const code = await command.ended;
  return { code, out: command.out, err: command.err };
}
