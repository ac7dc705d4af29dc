import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PROJECT_ROOT } from '../../support/project/project-files.js';
import { testRedisBinary } from '../../support/redis.js';

/* Where holdfast/testing takes its Redis from, and what it says if there is none. */

const exec = promisify(execFile);
const PROGRAM = `
import { startTestClient } from '${PROJECT_ROOT}/dist/testing.mjs';
try {
  const { client, close } = await startTestClient();
  const works = await client.getLock('order:42').tryLock();
  await close();
  console.log(JSON.stringify({ works }));
} catch ({ code, message }) {
  console.log(JSON.stringify({ code, message }));
}`;

let scratch: string;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'holdfast-no-server-'));
  writeFileSync(join(scratch, 'program.mjs'), PROGRAM);
});
afterAll(() => rmSync(scratch, { recursive: true }));

/** Runs the program with only these folders on its PATH, where nothing was and nothing can be downloaded. */
async function run(env: Record<string, string>): Promise<{ works?: boolean; code?: string; message?: string }> {
  const download = { REDISMS_DOWNLOAD_DIR: join(scratch, 'cache'), REDISMS_DOWNLOAD_MIRROR: 'https://127.0.0.1:1' };
  const { stdout } = await exec(process.execPath, [join(scratch, 'program.mjs')], {
    cwd: PROJECT_ROOT,
    env: { HOME: scratch, PATH: '', ...download, ...env },
    timeout: 25_000,
  });
  return JSON.parse(stdout.trimEnd().split('\n').at(-1)!) as Awaited<ReturnType<typeof run>>;
}

test('without a server and without a download, a typed error says what to install', async () => {
  const { code, message } = await run({});
  expect(code).toBe('ERR_TEST_SERVER');
  expect(message).toMatch(
    /no redis-server or valkey-server is on the PATH.*ECONNREFUSED.*install redis-server.*REDISMS_SYSTEM_BINARY/,
  );
});

test('a REDISMS_SYSTEM_BINARY that is not there is named', async () => {
  const { code, message } = await run({ REDISMS_SYSTEM_BINARY: '/nowhere/redis-server' });
  expect([code, message]).toEqual(['ERR_TEST_SERVER', expect.stringContaining('neither /nowhere/redis-server nor')]);
});

test('the server on the PATH is used, without a look at the cache, and REDISMS_SYSTEM_BINARY goes before it', async () => {
  /** A folder with a server that notes its start. */
  const folderWith = (name: string): { folder: string; binary: string; starts(): number } => {
    const folder = join(scratch, name);
    const [binary, log] = [join(folder, 'redis-server'), join(folder, 'starts')];
    mkdirSync(folder);
    writeFileSync(log, '');
    writeFileSync(binary, `#!/bin/sh\n[ "$1" = "--version" ] || echo >> '${log}'\nexec '${testRedisBinary()}' "$@"\n`);
    chmodSync(binary, 0o755);
    return { folder, binary, starts: () => readFileSync(log, 'utf8').length };
  };
  const [onPath, named] = [folderWith('on-path'), folderWith('named')];
  expect(await run({ PATH: onPath.folder })).toEqual({ works: true });
  expect(onPath.starts()).toBeGreaterThan(0);
  const before = onPath.starts();
  expect(await run({ PATH: onPath.folder, REDISMS_SYSTEM_BINARY: named.binary })).toEqual({ works: true });
  expect([onPath.starts(), named.starts() > 0]).toEqual([before, true]);
});

/** Runs a program with a server that notes its starts. */
async function runWith(program: string, env: Record<string, string> = {}): Promise<{ output: string; starts: number }> {
  const folder = mkdtempSync(join(scratch, 'counted-'));
  const [binary, log, file] = [join(folder, 'redis-server'), join(folder, 'starts'), join(folder, 'program.mjs')];
  writeFileSync(log, '');
  writeFileSync(binary, `#!/bin/sh\n[ "$1" = "--version" ] || echo >> '${log}'\nexec '${testRedisBinary()}' "$@"\n`);
  chmodSync(binary, 0o755);
  writeFileSync(
    file,
    `import { shareTestServer, startTestClient } from '${PROJECT_ROOT}/dist/testing.mjs';\n${program}`,
  );
  const settings = { cwd: PROJECT_ROOT, env: { HOME: scratch, PATH: folder, ...env }, timeout: 15_000 };
  const { stdout } = await exec(process.execPath, [file], settings);
  return { output: stdout.trim(), starts: readFileSync(log, 'utf8').length };
}

test('a start that fails leaves no open client, and the process ends', async () => {
  const program = `
    const failed = await startTestClient({ commandTimeout: 300 }).catch(({ code }) => code);
    console.log(failed);`;
  // No server listens at this port.
  const { output } = await runWith(program, { TEST_REDIS_OF_HOLDFAST: 'redis://127.0.0.1:1' });
  expect(output).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
});

test('shareTestServer() twice at once starts one server', async () => {
  const program = `
    const [first, second] = await Promise.all([shareTestServer(), shareTestServer()]);
    const { client, close } = await startTestClient();
    console.log(await client.getLock('order:42').tryLock());
    await close();
    await second();
    const again = await startTestClient();
    await again.close();
    await first();`;
  expect(await runWith(program)).toEqual({ output: 'true', starts: 1 });
});
