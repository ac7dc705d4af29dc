import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { elapsed } from '../time/elapsed.js';
import { findRedisBinary } from './redis-binary.mjs';
import { testRedisBinary } from '../redis.js';

let folder: string;
let said: string[];
let servers: Server[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-binary-'));
  said = [];
  servers = [];
});

afterEach(async () => {
  rmSync(folder, { recursive: true });
  await Promise.all(servers.map((server) => new Promise((closed) => server.close(closed))));
});

/** A simulated machine: only `bin` on its PATH, an empty cache of redis-memory-server, no network except `extra`. */
function machine(bin: Record<string, string>, extra: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  mkdirSync(join(folder, 'bin'));
  for (const [name, content] of Object.entries(bin)) {
    if (content.startsWith('#!')) {
      writeFileSync(join(folder, 'bin', name), content);
      chmodSync(join(folder, 'bin', name), 0o755);
    } else {
      symlinkSync(content, join(folder, 'bin', name));
    }
  }
  return { PATH: join(folder, 'bin'), HOME: folder, REDISMS_DOWNLOAD_DIR: join(folder, 'cache'), ...extra };
}

async function listen(server: Server): Promise<string> {
  servers.push(server);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const refused = { REDISMS_DOWNLOAD_MIRROR: 'https://127.0.0.1:1' };
const find = (env: NodeJS.ProcessEnv, root = false, limits = {}) =>
  findRedisBinary({ env, root, limits, say: (line) => said.push(line) });
const broken = '#!/bin/sh\nexit 127\n';

test('HOLDFAST_REDIS_BINARY has precedence over the PATH, and one line says so', async () => {
  const named = join(folder, 'named-server');
  symlinkSync(testRedisBinary(), named);
  const env = machine({ 'redis-server': testRedisBinary() }, { HOLDFAST_REDIS_BINARY: named });
  expect((await find(env)).path).toBe(named);
  expect(said).toHaveLength(1);
  expect(said[0]).toMatch(/^Redis [\d.]+: .*named-server \(named by HOLDFAST_REDIS_BINARY\)$/);
});

test('a HOLDFAST_REDIS_BINARY that does not run is an error and is not skipped', async () => {
  const env = machine({ 'redis-server': testRedisBinary() }, { HOLDFAST_REDIS_BINARY: join(folder, 'missing') });
  await expect(find(env)).rejects.toThrow(/HOLDFAST_REDIS_BINARY is .*missing/);
});

test('redis-server on the PATH has precedence over valkey-server, which is used if redis-server does not run', async () => {
  const both = machine({ 'redis-server': testRedisBinary(), 'valkey-server': testRedisBinary() });
  expect((await find(both)).path).toBe(join(folder, 'bin', 'redis-server'));
  writeFileSync(join(folder, 'bin', 'broken'), broken);
  chmodSync(join(folder, 'bin', 'broken'), 0o755);
  rmSync(join(folder, 'bin', 'redis-server'));
  expect((await find(both)).path).toBe(join(folder, 'bin', 'valkey-server'));
  symlinkSync(join(folder, 'bin', 'broken'), join(folder, 'bin', 'redis-server'));
  expect((await find(both)).path).toBe(join(folder, 'bin', 'valkey-server'));
  expect(said.every((line) => line.endsWith('(on the PATH)'))).toBe(true);
});

test('an earlier build of redis-memory-server is used without a download', async () => {
  const env = machine({}, refused);
  mkdirSync(join(folder, 'cache', 'stable'), { recursive: true });
  symlinkSync(testRedisBinary(), join(folder, 'cache', 'stable', 'redis-server'));
  expect((await find(env)).path).toBe(join(folder, 'cache', 'stable', 'redis-server'));
  expect(said).toEqual([expect.stringContaining('(built by redis-memory-server)')]);
});

test('redis-memory-server downloads and builds a server if it can', async () => {
  // The "compiler" copies a server that is here already: the download, the archive and the call of make are real.
  const source = join(folder, 'redis-stable');
  mkdirSync(join(source, 'src'), { recursive: true });
  writeFileSync(join(source, 'Makefile'), 'all:\n');
  const archive = join(folder, 'redis-stable.tar.gz');
  execFileSync('tar', ['-czf', archive, '-C', folder, 'redis-stable']);
  const body = readFileSync(archive);
  const mirror = await listen(createHttpServer((_request, response) => response.end(body)));
  const make = `#!/bin/sh\n/bin/cp ${testRedisBinary()} src/redis-server\n`;
  const env = machine({ make, sh: '/bin/sh' }, { REDISMS_DOWNLOAD_URL: `${mirror}/redis-stable.tar.gz` });
  expect((await find(env)).path).toBe(join(folder, 'cache', 'stable', 'redis-server'));
  expect(said).toEqual([
    expect.stringContaining('redis-memory-server builds one'),
    expect.stringContaining('(built by redis-memory-server)'),
  ]);
});

test('a download without a reply ends within its limit', async () => {
  const silent = await listen(createServer((socket) => socket.resume()));
  const env = machine({}, { REDISMS_DOWNLOAD_MIRROR: silent.replace('http:', 'https:') });
  const began = performance.now();
  await expect(find(env, false, { beginMs: 1_500 })).rejects.toThrow(/redis-memory-server: its download did not begin/);
  expect(elapsed(began)).toBeLessThan(5_000);
});

test('root uses the system packages without a question', async () => {
  const apt = `#!/bin/sh
echo "$DEBIAN_FRONTEND $*" >> ${join('$HOME', 'calls')}
[ "$1" = update ] && exit 0
[ "$4" = redis-server ] && { echo "E: Unable to locate package redis-server" >&2; exit 100; }
/bin/ln -s ${testRedisBinary()} ${join('$HOME', 'bin', 'valkey-server')}
`;
  const env = machine({ 'apt-get': apt }, refused);
  expect((await find(env, true)).path).toBe(join(folder, 'bin', 'valkey-server'));
  expect(readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n')).toEqual([
    'noninteractive update',
    'noninteractive install -y --no-install-recommends redis-server',
    'noninteractive install -y --no-install-recommends valkey-server',
  ]);
  expect(said.at(-1)).toMatch(/\(installed with apt-get\)$/);
});

test('if all ways fail the error lists the attempts and the command for each system', async () => {
  const apt = '#!/bin/sh\necho "E: no network" >&2\nexit 100\n';
  const failing = machine({ 'apt-get': apt, 'redis-server': broken }, refused);
  const error = await find(failing, true).then(String, String);
  expect(error).toMatch(/PATH: no redis-server and no valkey-server that runs/);
  expect(error).toMatch(/redis-memory-server: connect ECONNREFUSED/);
  expect(error).toMatch(/system packages: apt-get install .*: E: no network/);
  for (const command of ['apt-get install', 'apk add', 'dnf install', 'pacman -S', 'brew install']) {
    expect(error).toContain(command);
  }
  expect(await find(failing, false).then(String, String)).toMatch(/system packages: not tried, since this is not root/);
  expect(said).toEqual([expect.stringContaining('installing one with apt-get')]);
});
