// @ts-check
// npm run suite -- mutants [-- PATTERN]: takes one mechanism after the other out of a copy of the project and runs the
// tests that must notice. A mechanism without which all of them pass is not tested, or not needed.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MECHANISMS } from './mechanisms.mjs';
import { progressFile } from './progress.mjs';

const root = join(import.meta.dirname, '../../..');
const pattern = new RegExp(process.argv[2] ?? '');
const copy = mkdtempSync(join(tmpdir(), 'holdfast-mutants-'));
const results = join(copy, 'results.json');

/** Separate processes run the built package. */
function build() {
  const { status, stderr } = spawnSync(
    'node',
    ['node_modules/tsdown/dist/run.mjs', '-c', '.ci/tsdown.config.mjs', '--logLevel', 'warn', '--no-dts'],
    {
      cwd: copy,
      encoding: 'utf8',
    },
  );
  if (status !== 0) throw new Error(`the copy cannot be built: ${stderr}`);
}

const SHORT_MS = 120_000;
/** An endless wait must be reported, test by test, before this time. */
const TEST_MS = 12_000;
/** Longer where the nemesis takes its minutes and then shrinks its schedule. @type {(tests: readonly string[]) => number} */
const limitMs = (tests) => (tests.some((test) => test.includes('/soak/')) ? 480_000 : SHORT_MS);

/** For a run that did not end: the failed tests, and the tests in progress. */
function unfinished() {
  /** @type {Map<string, string>} */
  const last = new Map();
  const lines = existsSync(progressFile(copy)) ? readFileSync(progressFile(copy), 'utf8').trim().split('\n') : [];
  for (const line of lines) {
    /** @type {{ name: string, status: string }} */
    const { name, status } = JSON.parse(line);
    last.set(name, status);
  }
  const failed = [...last].flatMap(([name, status]) => (status === 'failed' ? [name] : []));
  const stuck = [...last].flatMap(([name, status]) => (status === 'begun' ? [`came to no end: ${name}`] : []));
  return failed.length + stuck.length > 0 ? [...failed, ...stuck] : ['the run came to no end'];
}

/** The results of the tests that failed last. @type {Map<string, string>} */
const reasons = new Map();

/** The names of the tests that fail; undefined if none was run. @type {(tests: readonly string[]) => string[] | undefined} */
function failingTests(tests) {
  rmSync(results, { force: true });
  rmSync(progressFile(copy), { force: true });
  const options = ['--config', 'tests/jest.config.mjs', '--runInBand', '--json', `--outputFile=${results}`];
  options.push('--reporters=<rootDir>/tests/verification/mutants/progress.mjs');
  options.push(`--testTimeout=${limitMs(tests) > SHORT_MS ? limitMs(tests) : TEST_MS}`);
  const jest = ['node_modules/jest/bin/jest.js', ...options, ...tests];
  spawnSync('node', ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', ...jest], {
    cwd: copy,
    timeout: limitMs(tests),
    killSignal: 'SIGKILL', // without its mechanism the code may never come back to the event loop
  });
  /** @type {{ testResults: { message: string, assertionResults: { status: string, fullName: string, failureMessages: string[] }[] }[] }} */
  let report;
  try {
    report = JSON.parse(readFileSync(results, 'utf8'));
  } catch {
    return unfinished();
  }
  if (report.testResults.length === 0) return undefined;
  return report.testResults.flatMap(({ assertionResults, message }) => {
    if (assertionResults.length === 0 && message !== '') return [message.split('\n')[0] ?? ''];
    return assertionResults.flatMap(({ status, fullName, failureMessages: [why = ''] }) => {
      if (status !== 'failed') return [];
      reasons.set(fullName, /Received: .*/.exec(why)?.[0] ?? '');
      return [fullName];
    });
  });
}

/** Failures without a mutant say nothing about a mutant: by test, with their results. @type {Map<string, ReadonlyMap<string, string>>} */
const failingAnyway = new Map();
/** @type {(test: string) => ReadonlyMap<string, string>} */
function failAnyway(test) {
  let known = failingAnyway.get(test);
  if (known === undefined) {
    build();
    known = new Map((failingTests([test]) ?? []).map((each) => [each, reasons.get(each) ?? '']));
    failingAnyway.set(test, known);
  }
  return known;
}

let survived = 0;
let undecided = 0;
try {
  for (const part of ['dist', 'src', 'lua', 'tests', '.ci', 'package.json', 'tsconfig.json', 'README.md', 'docs']) {
    cpSync(join(root, part), join(copy, part), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  for (const { name, file, find, put, tests } of MECHANISMS.filter((mechanism) => pattern.test(mechanism.name))) {
    const path = join(copy, file);
    const text = readFileSync(path, 'utf8');
    if (text.split(find).length !== 2) throw new Error(`${name}: ${file} does not have it once: ${find}`);
    const changed = text.replace(find, () => put);
    // One after the other: the first that notices is enough.
    /** @type {string[]} */
    let failed = [];
    /** @type {ReadonlyMap<string, string>} */
    let why = new Map();
    /** @type {ReadonlyMap<string, string>} */
    let anyway = new Map();
    let mutated = false;
    const begun = performance.now();
    for (const test of tests) {
      if (!mutated) {
        writeFileSync(path, changed);
        build();
        mutated = true;
      }
      const failing = failingTests([test]);
      if (failing === undefined) throw new Error(`${name}: no test in ${test}`);
      if (failing.length === 0) continue;
      why = new Map(reasons);
      writeFileSync(path, text);
      mutated = false;
      const seconds = ((performance.now() - begun) / 1_000).toFixed(0);
      const known = failAnyway(test);
      failed = failing.filter((each) => !known.has(each));
      if (failed.length > 0) {
        console.log(`removed ${name}: ${failed.length} failed after ${seconds} s`);
        break;
      }
      anyway = known;
    }
    writeFileSync(path, text);
    if (failed.length === 0 && anyway.size > 0) {
      undecided += 1;
      console.log(`UNDECIDED without ${name}: these fail with it, too`);
    } else if (failed.length === 0) {
      survived += 1;
      console.log(`SURVIVED without ${name}`);
    }
    for (const each of failed.slice(0, 3)) console.log(`    ${each} ${why.get(each) ?? ''}`);
    if (failed.length > 0) continue;
    for (const [each, unchanged] of [...anyway].slice(0, 3))
      console.log(`    ${each} ${why.get(each) ?? ''}; with it: ${unchanged}`);
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}
if (survived > 0) console.log(`${survived} mechanisms are not noticed`);
if (undecided > 0) console.log(`${undecided} are not known to be noticed, because tests fail without any change`);
if (survived + undecided === 0) console.log('every mechanism is noticed');
process.exitCode = survived + undecided === 0 ? 0 : 1;
