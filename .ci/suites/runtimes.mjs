// @ts-check
import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startRedisServer } from '../../tests/support/servers/redis-server.mjs';

/*
 * A small suite with the built package in runtimes other than Node, from their npm packages. One that cannot be had
 * here is named and not run.
 */

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/holdfast/', import.meta.url));
const PROGRAM = fileURLToPath(new URL('../../tests/interop/runtimes/program.mjs', import.meta.url));
const LIMIT_MS = 60_000;

const exec = promisify(execFile);
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
const exe = process.platform === 'win32' ? '.exe' : '';

const runtimes = [
  { name: 'bun', version: '1.4', scope: '@oven', binary: `bin/bun${exe}`, args: [] },
  {
    name: 'deno',
    version: '2.9',
    scope: '@deno',
    binary: `deno${exe}`,
    args: ['run', '-A', '--node-modules-dir=manual'],
  },
];

/**
 * The scripts of the packages, which npm may be told not to run, would copy the binary of the platform's package.
 *
 * @param {typeof runtimes[number]} runtime
 */
async function installed({ name, version, scope, binary }) {
  const folder = join(CACHE, `${name}-${version}`);
  if (!existsSync(join(folder, 'complete'))) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{ "private": true }');
    const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save'];
    await exec(npm, ['install', '--prefix', folder, ...quiet, `${name}@${version}`], { shell: npm !== 'npm' });
    writeFileSync(join(folder, 'complete'), '');
  }
  const packages = join(folder, 'node_modules', scope);
  // npm installs the one that fits, or several: for processors with and without some instructions.
  const paths = readdirSync(packages).map((each) => join(packages, each, binary));
  for (const path of paths.filter((each) => existsSync(each))) {
    chmodSync(path, 0o755);
    const runs = await exec(path, ['--version']).then(
      () => true,
      () => false,
    );
    if (runs) return path;
  }
  throw new Error('none of its binaries runs on this machine');
}

let failed = false;
let ran = 0;
for (const runtime of runtimes) {
  const title = `${runtime.name} ${runtime.version}`;
  /** @type {string} */
  let path;
  try {
    path = await installed(runtime);
  } catch (error) {
    console.log(`${title}: not run: it could not be had here (${String(error).split('\n')[0]})`);
    continue;
  }
  ran += 1;
  const server = await startRedisServer();
  try {
    const { stdout } = await exec(path, [...runtime.args, PROGRAM, server.url], { timeout: LIMIT_MS });
    console.log(`${title}: passed ${stdout.trim()}`);
  } catch (error) {
    const { stdout, stderr } = /** @type {{ stdout?: string, stderr?: string }} */ (error);
    console.log(`${title}: FAILED\n${stdout ?? String(error)}${stderr ?? ''}`);
    failed = true;
  } finally {
    await server.stop();
  }
}
if (ran === 0) console.log('FAILED: no runtime ran the tests');
process.exitCode = failed || ran === 0 ? 1 : 0;
