// Runs the suites that talk to Redis on every server that can be had here, and says which ones that were.
// HOLDFAST_SERVERS="system 6.0" picks some; further arguments go to jest.
import { spawn, execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const SERVERS = (process.env.HOLDFAST_SERVERS ?? 'system 6.0 8.0 valkey-8.1').split(' ');
const SUITES = ['contracts', 'integration', 'faults', 'lua', 'topologies'].map((name) => `tests/${name}/`);
const given = process.argv.slice(2);

/** @param {string} server */
function binaryOf(server) {
  if (server === 'system') return undefined;
  return execFileSync(join(here, 'get-server'), [server], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  }).trim();
}

/** @param {string | undefined} binary @returns {Promise<number>} */
function run(binary) {
  const args = [
    'run',
    '--silent',
    'jest',
    '--',
    '--testPathIgnorePatterns=/node_modules/',
    // Most of the time they wait.
    '--maxWorkers=4',
    '--testTimeout=60000',
    '--forceExit',
  ];
  const child = spawn('npm', [...args, ...(given.length > 0 ? given : SUITES)], {
    stdio: 'inherit',
    env: { ...process.env, ...(binary !== undefined && { HOLDFAST_REDIS_BINARY: binary }) },
  });
  return new Promise((resolve) => child.once('close', (code) => resolve(code ?? 1)));
}

const results = [];
for (const server of SERVERS) {
  console.log(`\n=== ${server}`);
  let binary;
  try {
    binary = binaryOf(server);
  } catch {
    results.push({ server, result: 'not run: it could not be had here', failed: false });
    continue;
  }
  const failed = (await run(binary)) !== 0;
  results.push({ server, result: failed ? 'FAILED' : 'passed', failed });
}
console.log(`\nServers:\n${results.map(({ server, result }) => `  ${server}: ${result}`).join('\n')}`);
process.exitCode = results.some(({ failed }) => failed) ? 1 : 0;
