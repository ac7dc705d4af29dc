import { execFile } from 'node:child_process';
import { PROJECT_ROOT } from '../project/project-files.js';

export interface Ended {
  readonly code: number | string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a file of examples/ to its end, as `npm run` does; one that does not end is killed. */
export function runExample(
  [file = '', ...args]: readonly string[],
  env: Record<string, string>,
  limitMs = 50_000,
): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--import', 'tsx', `examples/${file}`, ...args],
      // Jest and the processes started here each have their own NODE_OPTIONS.
      { cwd: PROJECT_ROOT, env: { ...process.env, NODE_OPTIONS: '', ...env }, timeout: limitMs, killSignal: 'SIGKILL' },
      (error, stdout, stderr) => resolve({ code: error ? (error.code ?? error.signal ?? null) : 0, stdout, stderr }),
    );
  });
}
