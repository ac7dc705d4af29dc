// @ts-check
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { faultsUnder } from '../../tests/interop/instrumentation/watch.mjs';
import { startRedisServer } from '../../tests/support/servers/redis-server.mjs';

/*
 * Locks while agents watch, with the real packages, most of which are too big to be among the dependencies. One that
 * cannot be had here is named and not run.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CACHE = join(ROOT, 'node_modules/.cache/holdfast');
const OPENTELEMETRY = ['@opentelemetry/api@1.9', '@opentelemetry/sdk-trace-node@2'];

const rows = [
  ...['5.4.1', '5.11.1', '6.0.0'].map((ioredis) => ({
    agent: 'opentelemetry',
    packages: ['@opentelemetry/instrumentation-ioredis@0.71', ...OPENTELEMETRY],
    ioredis,
  })),
  { agent: 'sentry', packages: ['@sentry/node@9'], ioredis: '5.10.1' },
  { agent: 'sentry', packages: ['@sentry/node@10'], ioredis: '5.10.1' },
  { agent: 'sentry', packages: ['@sentry/node@10'], ioredis: '6.0.0' },
  { agent: 'dd-trace', packages: ['dd-trace@6'], ioredis: '5.4.1' },
  { agent: 'dd-trace', packages: ['dd-trace@6'], ioredis: '6.0.0' },
  { agent: 'newrelic', packages: ['newrelic@13'], ioredis: '5.4.1' },
  { agent: 'newrelic', packages: ['newrelic@13'], ioredis: '6.0.0' },
];

const exec = promisify(execFile);
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';

/** @param {string[]} packages @returns {Promise<string>} a folder where they are installed, and the built package */
async function installed(packages) {
  const folder = join(CACHE, packages.join('-').replace(/[^\w.-]+/g, '-'));
  if (!existsSync(join(folder, 'complete'))) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{ "private": true }');
    const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save'];
    await exec(npm, ['install', '--prefix', folder, ...quiet, ...packages], { shell: npm !== 'npm' });
    writeFileSync(join(folder, 'complete'), '');
  }
  const own = join(folder, 'node_modules/holdfast');
  rmSync(own, { recursive: true, force: true });
  for (const part of ['dist', 'package.json']) cpSync(join(ROOT, part), join(own, part), { recursive: true });
  return folder;
}

let failed = false;
let ran = 0;
for (const { agent, packages, ioredis } of rows) {
  const title = `${packages[0] ?? agent} with ioredis ${ioredis}`;
  /** @type {string} */
  let folder;
  try {
    folder = await installed([`ioredis@${ioredis}`, ...packages]);
  } catch (error) {
    console.log(`${title}: not run: it could not be had here (${String(error).split('\n')[0]})`);
    continue;
  }
  ran += 1;
  // What an agent leaves behind when it ends the process is not for the next one.
  const server = await startRedisServer();
  try {
    /** @type {'late'[][]} */
    const starts = agent === 'opentelemetry' ? [[], ['late']] : [[]];
    for (const options of starts) {
      const faults = await faultsUnder(agent, folder, server.url, ...options);
      console.log(`${[title, ...options].join(', ')}: ${faults.length === 0 ? 'passed' : 'FAILED'}`);
      for (const fault of faults) console.log(`  ${fault}`);
      failed ||= faults.length > 0;
    }
  } finally {
    await server.stop();
  }
}
if (ran === 0) console.log('FAILED: no agent ran');
process.exitCode = failed || ran === 0 ? 1 : 0;
