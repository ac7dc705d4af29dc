// Runs the suites that talk to Redis on every server whose package is available here, and names those servers. To run on
// none of them is a failure.
// HOLDFAST_SERVERS="system 6.0" picks some; files, folders and options of jest may follow.
import { spawn, execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const SERVERS = (process.env.HOLDFAST_SERVERS ?? 'system 6.0 8.0 valkey-8.1').split(' ');
const SETUPS = 'tests/topologies/';
const SUITES = ['contracts', 'integration', 'faults', 'lua'].map((name) => `tests/${name}/`);
const words = process.argv.slice(2);
const firstOption = words.findIndex((word) => word.startsWith('-'));
const options = firstOption < 0 ? [] : words.splice(firstOption);
const given = words.length > 0 ? words : [...SUITES, SETUPS];
const setups = given.filter((path) => path.startsWith(SETUPS));
const others = given.filter((path) => !setups.includes(path));

/** @param {string} server */
function binaryOf(server) {
  if (server === 'system') return undefined;
  return execFileSync(join(here, 'get-server'), [server], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  }).trim();
}

/** @param {string | undefined} binary @param {string[]} paths @param {number} workers @returns {Promise<number>} */
function run(binary, paths, workers) {
  const args = ['run', '--silent', 'jest', '--', `--maxWorkers=${workers}`, '--testTimeout=60000', '--forceExit'];
  const child = spawn('npm', [...args, ...options, ...paths], {
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
    results.push({ server, result: 'not run: its package is not available here', ran: false, failed: false });
    continue;
  }
  let failed = false;
  // Most of the time tests wait, but for those that start clusters: a node without a processor counts as dead.
  if (others.length > 0) failed = (await run(binary, others, 4)) !== 0;
  if (setups.length > 0) failed = (await run(binary, setups, 2)) !== 0 || failed;
  results.push({ server, result: failed ? 'FAILED' : 'passed', ran: true, failed });
}
console.log(`\nServers:\n${results.map(({ server, result }) => `  ${server}: ${result}`).join('\n')}`);
if (!results.some(({ ran }) => ran)) console.log('FAILED: the tests ran on no server');
process.exitCode = results.every(({ ran }) => !ran) || results.some(({ failed }) => failed) ? 1 : 0;
