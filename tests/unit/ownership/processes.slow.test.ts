import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { buildOwnership, compileTargets, removeBuilt } from '../../support/ownership/ownership-build.mjs';
import { surroundings } from '../../support/ownership/ownership-surroundings.mjs';
import { PROJECT_ROOT } from '../../support/project/project-files.js';
import { until } from '../../support/time/until.js';

const exec = promisify(execFile);
const RUNNER = fileURLToPath(new URL('../../support/ownership/ownership-runner.mjs', import.meta.url));
const fixture = (name: string): string => fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url));

/** Jest and the processes started here each have their own. */
const ENV = { ...process.env, NODE_OPTIONS: '' };

let folder: string;
beforeAll(async () => {
  folder = await buildOwnership(`processes-${process.pid}`);
});
afterAll(() => removeBuilt(folder));

async function run(built: string, ...flags: string[]): Promise<{ scenarios: number; failures: string[] }> {
  const { stdout } = await exec(process.execPath, [RUNNER, '--folder', built, ...flags], { env: ENV }).catch(
    (error: unknown) => {
      const { stdout } = error as { stdout?: string };
      if (!stdout) throw error;
      return { stdout };
    },
  );
  return JSON.parse(stdout) as { scenarios: number; failures: string[] };
}

const NO_FAILURES = { scenarios: expect.any(Number), failures: [] };

describe('every usage behaves the same', () => {
  test.each(Object.keys(surroundings))('R24: with %s, begun before and after the library is loaded', async (name) => {
    const runs = [run(folder, '--surrounding', name), run(folder, '--surrounding', name, '--late')];
    for (const report of await Promise.all(runs)) expect(report).toMatchObject(NO_FAILURES);
  });

  test('R24: in a worker thread', async () => {
    expect(await run(folder, '--worker', '--comparisons', '5000')).toMatchObject(NO_FAILURES);
  });

  test.each(Object.keys(compileTargets))('R24: in user code compiled by %s', async (target) => {
    const built = await buildOwnership(`processes-${process.pid}-${target.replaceAll(' ', '-')}`, target);
    try {
      expect(await run(built)).toMatchObject(NO_FAILURES);
    } finally {
      await removeBuilt(built);
    }
  });
});

test('R24: a top-level await enters its own module, and not importing or sibling modules', async () => {
  const { stdout } = await exec(process.execPath, [fixture('top-level-await/main.mjs')], {
    env: { ...ENV, HOLDFAST_LOCKS: pathToFileURL(join(folder, 'library.mjs')).href },
  });
  expect(JSON.parse(stdout)).toEqual({
    holder: { taken: [true, true], count: 2, inside: true },
    sibling: { insideAtOnce: false, insideLater: false },
    importer: { inside: false, tried: false, unlocked: 'ERR_LOCK_NOT_OWNER' },
  });
});

test('R24: each line of a REPL is its own flow', async () => {
  const repl = spawn(process.execPath, ['--interactive'], {
    env: { ...ENV, NO_COLOR: '1', HOLDFAST_LOCKS: pathToFileURL(join(folder, 'library.mjs')).href },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let printed = '';
  repl.stdout.setEncoding('utf8').on('data', (chunk: string) => (printed += chunk));
  const ended = once(repl, 'close');
  const lines = readFileSync(fixture('repl-lines.txt'), 'utf8').trim().split('\n');
  for (const [at, line] of lines.entries()) {
    // A line typed while the one before still awaits would be evaluated beside it.
    await until(() => printed.split('> ').length > at + 1, `prompt ${at + 1} in: ${printed}`);
    repl.stdin.write(`${line}\n`);
  }
  await ended;
  expect(printed).toMatch(/on one line ok/);
  expect(printed).toMatch(/on two lines ERR_LOCK_NOT_OWNER/);
});

test('R24: a test of Jest in CommonJS mode is inside what it awaits', async () => {
  const jest = join(PROJECT_ROOT, 'node_modules/jest/bin/jest.js');
  const config = { rootDir: fixture('jest-cjs'), testMatch: ['**/*.cjs'], transform: {} };
  const { stderr } = await exec(process.execPath, [jest, '--config', JSON.stringify(config)], {
    env: { ...ENV, HOLDFAST_LOCKS: join(folder, 'library.cjs') },
  });
  expect(stderr).toMatch(/2 passed, 2 total/);
});
