// @ts-check
// npm run suite -- interop [-- PATTERN]: builds the JVM worker for each version of Redisson and runs tests/interop/redisson with it.
// HOLDFAST_REDISSON_VERSIONS="4.7.0" picks some; HOLDFAST_CONTESTS=20 runs the mixed contest so often.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { buildWorker, NO_JVM, missingTools } from './java-build.mjs';

const VERSIONS = (process.env.HOLDFAST_REDISSON_VERSIONS ?? '4.7.0 3.52.0').split(' ');
const root = join(import.meta.dirname, '../../..');
const given = process.argv.slice(2);

const missing = missingTools();
if (missing.length > 0) {
  console.log(`Not run: this needs a JDK (17 or later) and Maven; ${missing.join(' and ')} did not answer.`);
  process.exit(NO_JVM);
}

/** @param {string} version */
function run(version) {
  console.log(`\n=== Redisson ${version}`);
  buildWorker(version);
  const jest = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js'];
  const settings = ['--config', 'tests/jest.config.mjs', '--maxWorkers=1', '--testTimeout=300000'];
  const files =
    given.length > 0 ? given.map((pattern) => `tests/interop/redisson/.*${pattern}`) : ['tests/interop/redisson/'];
  return spawnSync(process.execPath, [...jest, ...settings, ...files], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, HOLDFAST_REDISSON: version },
  }).status;
}

const failed = VERSIONS.filter((version) => run(version) !== 0);
console.log(`\nRedisson: ${VERSIONS.map((v) => `${v} ${failed.includes(v) ? 'FAILED' : 'passed'}`).join(', ')}`);
process.exitCode = failed.length > 0 ? 1 : 0;
