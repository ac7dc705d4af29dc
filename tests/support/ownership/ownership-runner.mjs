// @ts-check
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { inspect, isDeepStrictEqual, parseArgs } from 'node:util';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import { surroundings } from './ownership-surroundings.mjs';

/*
 * Runs the ownership tests that were built into a folder (ownership-build.mjs) in a process without a test runner:
 *
 * node ownership-runner.mjs --folder <built> [--surrounding <name>] [--late] [--worker] [--comparisons <n>] [--locks
 * <module>]
 *
 * Prints the executed tests as one line of JSON and exits with 1 if a result was not as expected.
 */

/**
 * @typedef {object} Options
 * @property {string} folder
 * @property {string} surrounding
 * @property {boolean} late the surrounding begins after the library has been loaded
 * @property {number} comparisons
 * @property {string} [locks] a module with `openLocks`; those in memory if absent
 */

/** @typedef {{ node: string, scenarios: number, comparisons: number, failures: string[] }} Report */

const LIMIT_MS = 20_000;

/**
 * @param {string} file
 * @returns {Promise<unknown>}
 */
const load = (file) => import(pathToFileURL(file).href);

/**
 * @param {Options} options
 * @returns {Promise<Report>}
 */
async function run({ folder, surrounding, late, comparisons, locks }) {
  const begin = surroundings[surrounding];
  if (begin === undefined) throw new Error(`no such surrounding: ${surrounding}`);
  let end = late ? undefined : begin();
  const library = /** @type {typeof import('./ownership-library.ts')} */ (await load(join(folder, 'library.mjs')));
  const { openLocks } = locks === undefined ? library : /** @type {typeof library} */ (await load(locks));
  const { scenarioSets } = /** @type {typeof import('../../unit/ownership/scenarios/index.ts')} */ (
    await load(join(folder, 'scenarios', 'index.js'))
  );
  end ??= begin();

  /** @type {string[]} */
  const failures = [];
  const expect = (/** @type {string} */ what, /** @type {unknown} */ seen, /** @type {unknown} */ expected) => {
    if (!isDeepStrictEqual(seen, expected)) failures.push(`${what}: ${inspect(seen)}, not ${inspect(expected)}`);
  };
  expect('the self-test', await library.supportsBoundPromises(), true);
  const { adapter, close } = await openLocks();
  const scenarios = Object.values(scenarioSets).flat();
  for (const { name, run, expected } of scenarios) {
    expect(name, await within(LIMIT_MS, run(adapter, name)), expected);
  }
  const rejections = await library.unhandledRejections(() => library.boundRejection(new Error('refused')));
  expect('unhandled rejections', rejections, library.expectedUnhandledRejections);
  const flows =
    comparisons === 0
      ? { comparisons: 0, mismatches: 0 }
      : await library.runRandomFlows(new library.Random('random flows'), comparisons);
  expect('mismatches in random programs', flows.mismatches, 0);
  await close();
  end();
  return { node: process.version, scenarios: scenarios.length, comparisons: flows.comparisons, failures };
}

/**
 * @param {number} ms
 * @param {Promise<unknown>} running
 */
async function within(ms, running) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  /** @type {Promise<unknown>} */
  const limit = new Promise((resolve) => (timer = setTimeout(resolve, ms, 'did not end')));
  const caught = running.catch((/** @type {unknown} */ error) => `failed: ${inspect(error)}`);
  return Promise.race([caught, limit]).finally(() => clearTimeout(timer));
}

/**
 * @param {Options} options
 * @returns {Promise<Report>}
 */
function runInWorker(options) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: options });
    worker.once('message', resolve).once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the worker ended with ${code}`)));
  });
}

if (isMainThread) {
  const { values } = parseArgs({
    options: {
      folder: { type: 'string' },
      surrounding: { type: 'string', default: 'nothing else' },
      late: { type: 'boolean', default: false },
      worker: { type: 'boolean', default: false },
      comparisons: { type: 'string', default: '0' },
      locks: { type: 'string' },
    },
  });
  const { folder, worker, comparisons, ...rest } = values;
  if (folder === undefined) throw new Error('--folder is missing');
  const report = await (worker ? runInWorker : run)({ ...rest, folder, comparisons: Number(comparisons) });
  console.log(JSON.stringify(report));
  // Do not wait for work that a surrounding has left running.
  process.exit(report.failures.length === 0 ? 0 : 1);
} else {
  const options = /** @type {Options} */ (/** @type {unknown} */ (workerData));
  parentPort?.postMessage(await run(options));
}
