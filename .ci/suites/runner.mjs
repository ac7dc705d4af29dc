// @ts-check
import { spawn } from 'node:child_process';

/**
 * Runs steps one after the other, also after one that failed, and prints a summary with a line for each of them.
 *
 * @import { Step } from './steps.mjs'
 */

/** With this status, a suite says that the machine lacks what it needs. */
const NOT_RUN = 3;
const NO_TURN = 'FAILED: it did not get its turn';

/** @type {Readonly<Record<'SIGINT' | 'SIGTERM', number>>} */
const STATUS_OF = { SIGINT: 130, SIGTERM: 143 };

/**
 * Each step is a process group. A signal to this process ends the group of the present step, and the run.
 *
 * @param {Readonly<Record<string, Step>>} steps the steps to run, in their order
 * @returns {Promise<number>} the exit status of the run
 */
export async function runSteps(steps) {
  const begun = performance.now();
  /** @type {Map<string, string>} */
  const results = new Map(Object.keys(steps).map((name) => [name, NO_TURN]));
  /** @type {number | undefined} */
  let group;
  let endedWith = 0;
  /** @param {NodeJS.Signals} signal */
  const end = (signal) => {
    endedWith ||= STATUS_OF[/** @type {keyof typeof STATUS_OF} */ (signal)];
    if (group !== undefined) process.kill(-group, 'SIGKILL');
  };
  // Before the first step: a signal that finds no listener would end this process and leave the step running.
  for (const signal of Object.keys(STATUS_OF)) process.on(signal, end);
  for (const [name, step] of Object.entries(steps)) {
    if (endedWith > 0) break;
    const stepBegun = performance.now();
    const child = start(step);
    group = child.pid;
    const status = await statusOf(child);
    group = undefined;
    results.set(name, resultOf(step, status, secondsSince(stepBegun)));
  }
  for (const signal of Object.keys(STATUS_OF)) process.off(signal, end);
  const failed = [...results.values()].filter((result) => result.startsWith('FAILED')).length;
  console.log(`\nSteps:\n${[...results].map(([name, result]) => `  ${name}: ${result}`).join('\n')}`);
  console.log(`done in ${secondsSince(begun)} s: ${results.size} steps, ${failed} of them failed`);
  return endedWith || (failed > 0 ? 1 : 0);
}

/** @param {number} begun */
const secondsSince = (begun) => Math.round((performance.now() - begun) / 1_000);

/** @param {Step} step @param {number | NodeJS.Signals} status @param {number} seconds */
function resultOf({ lacks }, status, seconds) {
  if (status === 0) return `passed (${seconds} s)`;
  if (status === NOT_RUN && lacks !== undefined) return `not run: ${lacks}`;
  return `FAILED with ${typeof status === 'number' ? `status ${status}` : status} (${seconds} s)`;
}

/** @param {Step} step */
const start = ({ run, env }) =>
  spawn(run, {
    shell: true,
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, ...env },
  });

/** @param {import('node:child_process').ChildProcess} child @returns {Promise<number | NodeJS.Signals>} */
const statusOf = (child) =>
  new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 1));
  });
