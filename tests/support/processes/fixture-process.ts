import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { expect } from '@jest/globals';
import { promisify } from 'node:util';

const run = promisify(execFile);
const LIMIT_MS = 25_000;

/** Runs a file of `fixtures` beside the test, with the built package, and returns its output as JSON. */
export async function runFixture<T>(
  file: string,
  args: readonly string[] = [],
  flags: readonly string[] = [],
  limitMs = LIMIT_MS,
): Promise<T> {
  const path = join(dirname(expect.getState().testPath!), 'fixtures', file);
  const { stdout } = await run(process.execPath, [...flags, path, ...args], {
    env: { ...process.env, NODE_OPTIONS: '' },
    timeout: limitMs,
  });
  return JSON.parse(stdout) as T;
}
