// @ts-check
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstLine, readRecord, whyFinal } from './repeat.mjs';

/**
 * Runs steps one after the other, also after one that failed, and prints a summary with a line for each of them. A step that
 * takes too long is ended. Test files that failed run once more, each by itself; a file that passes then is a flake.
 *
 * @import { Failure } from './repeat.mjs'
 * @import { Step } from './steps.mjs'
 * @typedef {{ step: string, file: string, failures: readonly Failure[] }} Flake
 */

/** With this status, a suite says that the machine lacks what it needs. */
const NOT_RUN = 3;
const NO_TURN = 'FAILED: it did not get its turn';
/** A step may take so many times its usual time. */
const LIMIT = 3;

/** @type {Readonly<Record<'SIGINT' | 'SIGTERM', number>>} */
const STATUS_OF = { SIGINT: 130, SIGTERM: 143 };

/**
 * @param {Readonly<Record<string, Step>>} steps the steps to run, in their order
 * @param {(text: string) => void} [print]
 * @returns {Promise<number>} the exit status of the run
 */
export async function runSteps(steps, print = console.log) {
  const begun = performance.now();
  const run = new Run(print);
  for (const [name, step] of Object.entries(steps)) {
    run.results.set(name, run.isEnded ? NO_TURN : await run.step(name, step));
  }
  run.close();
  const failed = [...run.results.values()].filter((result) => result.startsWith('FAILED')).length;
  print(`\nSteps:\n${[...run.results].map(([name, result]) => `  ${name}: ${result}`).join('\n')}`);
  print(`done in ${secondsSince(begun)} s: ${run.results.size} steps, ${failed} of them failed`);
  if (run.flakes.length > 0) print(`Flakes:\n${run.flakes.map(linesOf).join('\n')}`);
  return run.endedWith || (failed > 0 ? 1 : 0);
}

class Run {
  /** @type {Map<string, string>} */
  results = new Map();
  /** @type {Flake[]} */
  flakes = [];
  endedWith = 0;
  /** The process group of the present command. @type {number | undefined} */
  #group;
  #folder = mkdtempSync(join(tmpdir(), 'holdfast-steps-'));
  #records = 0;

  /** @param {(text: string) => void} print */
  constructor(print) {
    this.print = print;
    // Before the first step: a signal that finds no listener would end this process and leave the step running.
    for (const signal of Object.keys(STATUS_OF)) process.on(signal, this.#end);
  }

  get isEnded() {
    return this.endedWith > 0;
  }

  close() {
    for (const signal of Object.keys(STATUS_OF)) process.off(signal, this.#end);
    rmSync(this.#folder, { recursive: true });
  }

  /** @param {string} name @param {Step} step @returns {Promise<string>} the result, in words */
  async step(name, step) {
    const begun = performance.now();
    const { status, isLate, record } = await this.#command(step.run, step);
    const took = () => `(${secondsSince(begun)} s)`;
    if (isLate) {
      const files = record.unfinished.length > 0 ? `; begun and not ended: ${record.unfinished.join(', ')}` : '';
      return `FAILED: it did not end within ${step.usualS * LIMIT} s${files}`;
    }
    if (status === 0 && record.failures.size === 0) {
      return step.tests && record.ended === 0 ? `FAILED: it ran no test ${took()}` : `passed ${took()}`;
    }
    if (status === NOT_RUN && step.lacks !== undefined) return `not run: ${step.lacks}`;
    const failure = `FAILED with ${typeof status === 'number' ? `status ${status}` : status}`;
    const why = step.tests === undefined || this.isEnded ? undefined : whyFinal(record);
    if (step.again === undefined || status !== 1 || why !== undefined || this.isEnded) {
      return `${failure} ${took()}${why === undefined ? '' : `; ${why}`}`;
    }
    for (const [file, { seed, failures }] of record.failures) {
      this.print(`\n=== once more, by itself: ${file}`);
      const env = { ...step.env, HOLDFAST_SEED: seed };
      const again = await this.#command(`${step.again} ${file}`, { ...step, env });
      const hasPassed = again.status === 0 && again.record.ended > 0 && again.record.failures.size === 0;
      if (!hasPassed) return `${failure} ${took()}; ${file} failed again`;
      this.flakes.push({ step: name, file, failures });
    }
    return `passed ${took()}, with flakes`;
  }

  /**
   * Runs a command as a process group of its own, which ends with its limit.
   *
   * @param {string} command
   * @param {Pick<Step, 'env' | 'usualS' | 'tests'>} step
   */
  async #command(command, { env, usualS, tests }) {
    const file = join(this.#folder, String((this.#records += 1)));
    const child = spawn(command, {
      shell: true,
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, ...env, ...(tests && { HOLDFAST_TEST_RECORD: file }) },
    });
    const group = (this.#group = child.pid);
    let isLate = false;
    const timer = setTimeout(
      () => {
        isLate = true;
        if (group !== undefined) endTree(group);
      },
      usualS * LIMIT * 1_000,
    );
    /** @type {number | NodeJS.Signals} */
    const status = await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (code, signal) => resolve(code ?? signal ?? 1));
    });
    clearTimeout(timer);
    this.#group = undefined;
    return { status, isLate, record: readRecord(existsSync(file) ? readFileSync(file, 'utf8') : '') };
  }

  /** @param {NodeJS.Signals} signal */
  #end = (signal) => {
    this.endedWith ||= STATUS_OF[/** @type {keyof typeof STATUS_OF} */ (signal)];
    if (this.#group !== undefined) endTree(this.#group);
  };
}

/** @param {number} begun */
const secondsSince = (begun) => Math.round((performance.now() - begun) / 1_000);

/** @param {Flake} flake */
const linesOf = ({ step, file, failures }) =>
  [`  ${step}: ${file}`, ...failures.map(({ title, message }) => `    ${title}: ${firstLine(message)}`)].join('\n');

/** Ends a process group, and the descendants that have groups of their own, such as a browser. @param {number} group */
function endTree(group) {
  const groups = new Set([group]);
  const rows = processes();
  const members = new Set([group]);
  for (let before = -1; before < members.size;) {
    before = members.size;
    for (const [pid = 0, parent = 0, of = 0] of rows) {
      if (members.has(parent) || groups.has(of)) {
        members.add(pid);
        groups.add(of);
      }
    }
  }
  for (const each of groups) {
    try {
      process.kill(-each, 'SIGKILL');
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** The id, the parent and the group of each process; none where `ps` knows no such options. @returns {number[][]} */
function processes() {
  try {
    const rows = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,pgid='], { encoding: 'utf8' }).trim().split('\n');
    return rows.map((row) => row.trim().split(/\s+/).map(Number));
  } catch {
    return [];
  }
}
