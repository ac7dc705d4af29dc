import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { transform } from 'esbuild';
import { execFile } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { PROJECT_ROOT, readProjectFile } from '../../support/project/project-files.js';
import { until } from '../../support/time/until.js';

const exec = promisify(execFile);
/** A test runner has to start, run three files and exit. */
const RUN_MS = 120_000;

interface Runner {
  /** The heading of its snippet in the guide. */
  readonly heading: string;
  /** Ending of its test files. */
  readonly ending: string;
  readonly format: 'cjs' | 'esm';
  /** The import of `test`, and of the hook that runs after the tests of a file. */
  readonly globals: string;
  /** Arguments of node that run the files of a folder, with one server for the run or without. */
  args(shared: boolean): string[];
}

const bin = (path: string): string => join(PROJECT_ROOT, 'node_modules', path);

const RUNNERS: Readonly<Record<string, Runner>> = {
  jest: {
    heading: '### Jest',
    ending: '.test.cjs',
    format: 'cjs',
    globals: `import { afterAll as after, beforeAll as before, test } from '@jest/globals';`,
    args: (shared) => [
      bin('jest/bin/jest.js'),
      `--config=${JSON.stringify({ testRegex: '\\.test\\.cjs$', transform: {}, ...(shared ? { globalSetup: '<rootDir>/share.mjs' } : {}) })}`,
      '--maxWorkers=2',
    ],
  },
  vitest: {
    heading: '### Vitest',
    ending: '.test.mjs',
    format: 'esm',
    globals: `import { afterAll as after, beforeAll as before, test } from 'vitest';`,
    args: (shared) => [
      bin('vitest/vitest.mjs'),
      'run',
      '--maxWorkers=2',
      '--hookTimeout=60000',
      ...(shared ? ['--config=./share.config.mjs'] : []),
    ],
  },
  'node:test': {
    heading: '### node:test',
    ending: '.test.mjs',
    format: 'esm',
    globals: `import { after, before, test } from 'node:test';`,
    args: (shared) => [shared ? './run.mjs' : '--test'],
  },
};

/** The first snippet under a line of the page about tests. */
function snippetUnder(line: string): string {
  const [, after] = readProjectFile('docs/testing.md').split(`\n${line}\n`);
  const code = after && /```ts\n([\s\S]*?)```/.exec(after)?.[1];
  if (code === undefined) throw new Error(`docs/testing.md has no snippet under the line: ${line}`);
  return code;
}

/** A test file that writes down the address of its server. */
const recording = (globals: string, n: number): string => `${globals}
import { writeFileSync } from 'node:fs';
import { startTestClient } from 'holdfast/testing';

let redis;
before(async () => {
  redis = await startTestClient({ commandTimeout: 20_000 });
});
after(() => redis.close());
test('the lock is free', async () => {
  if (!(await redis.client.getLock('order:42').tryLock())) throw new Error('busy');
  writeFileSync('${n}.url', redis.connection.url);
  await new Promise((resolve) => setTimeout(resolve, 500));
});
`;

let scratch: string;
beforeAll(() => {
  scratch = realpathSync(mkdtempSync(join(tmpdir(), 'holdfast-runners-')));
  for (const name of ['vitest', '@jest/globals', 'redis-memory-server']) {
    mkdirSync(dirname(join(scratch, 'node_modules', name)), { recursive: true });
    symlinkSync(bin(name), join(scratch, 'node_modules', name));
  }
  symlinkSync(PROJECT_ROOT, join(scratch, 'node_modules/holdfast'));
});
afterAll(() => rmSync(scratch, { recursive: true }));

/** Whether a server accepts connections at this address. */
const listens = (url: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });

describe.each(Object.entries(RUNNERS))('holdfast/testing under %s', (name, runner) => {
  test.each([
    ['each file has a server of its own', false],
    ['a run has one server, if a global setup shares it', true],
  ])(
    '%s; the snippet of the guide passes, and no server is left',
    async (_title, shared) => {
      const folder = join(scratch, `${name.replace(':', '-')}-${shared}`);
      mkdirSync(folder);
      const write = async (file: string, code: string, format: 'cjs' | 'esm'): Promise<void> =>
        writeFileSync(join(folder, file), (await transform(code, { loader: 'ts', format })).code);
      const { heading, ending, format, globals, args } = runner;
      await write(`guide${ending}`, snippetUnder(heading), format);
      for (const n of [1, 2]) await write(`file-${n}${ending}`, recording(globals, n), format);
      await write('share.mjs', snippetUnder('### One server for the whole run'), 'esm');
      await write('share.config.mjs', `export default { test: { globalSetup: ['./share.mjs'] } };`, 'esm');
      await write('run.mjs', snippetUnder('For `node:test`, start the run with a script:'), 'esm');
      const { NODE_OPTIONS: _, ...env } = process.env;
      const { stdout, stderr } = await exec(process.execPath, args(shared), {
        cwd: folder,
        // A run inside of a run of Jest would take its place among the workers of that one.
        env: { ...env, JEST_WORKER_ID: undefined, NODE_TEST_CONTEXT: undefined },
        timeout: RUN_MS,
      }).catch((error: unknown) => {
        const { message, stdout: out, stderr: err } = error as Error & { stdout: string; stderr: string };
        throw new Error(`${message}\n${out}\n${err}`);
      });
      expect(stdout + stderr).not.toMatch(/did not exit|force exited/);
      const urls = readdirSync(folder)
        .filter((file) => file.endsWith('.url'))
        .map((file) => readFileSync(join(folder, file), 'utf8'));
      expect(urls).toHaveLength(2);
      expect(new Set(urls).size).toBe(shared ? 1 : 2);
      for (const url of urls) await until(async () => !(await listens(url)), `the server at ${url} has ended`);
    },
    RUN_MS + 30_000,
  );
});
