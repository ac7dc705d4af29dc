// @ts-check
// npm run test:mutants [-- PATTERN]: takes one mechanism after the other out of a copy of the project and runs the
// tests that must notice. A mechanism without which all of them pass is not tested, or not needed.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MECHANISMS } from './mechanisms.mjs';

const root = join(import.meta.dirname, '../..');
const pattern = new RegExp(process.argv[2] ?? '');
const copy = mkdtempSync(join(tmpdir(), 'holdfast-mutants-'));
const results = join(copy, 'results.json');

/** The names of the tests that fail; undefined if none was run. @type {(tests: readonly string[]) => string[] | undefined} */
function failingTests(tests) {
  rmSync(results, { force: true });
  const jest = ['node_modules/jest/bin/jest.js', '--maxWorkers=1', '--json', `--outputFile=${results}`, ...tests];
  spawnSync('node', ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', ...jest], {
    cwd: copy,
    timeout: 300_000,
  });
  let report;
  try {
    report = JSON.parse(readFileSync(results, 'utf8'));
  } catch {
    return ['the run came to no end'];
  }
  if (report.numTotalTests === 0) return undefined;
  /** @type {{ message: string, assertionResults: { status: string, fullName: string }[] }[]} */
  const files = report.testResults;
  return files.flatMap(({ assertionResults, message }) => {
    if (assertionResults.length === 0 && message !== '') return [message.split('\n')[0] ?? ''];
    return assertionResults.flatMap(({ status, fullName }) => (status === 'failed' ? [fullName] : []));
  });
}

let survived = 0;
try {
  for (const part of ['src', 'lua', 'tests', 'package.json', 'tsconfig.json', 'README.md']) {
    cpSync(join(root, part), join(copy, part), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  for (const { name, file, find, put, tests } of MECHANISMS.filter((mechanism) => pattern.test(mechanism.name))) {
    const path = join(copy, file);
    const text = readFileSync(path, 'utf8');
    if (text.split(find).length !== 2) throw new Error(`${name}: ${file} does not have it once: ${find}`);
    writeFileSync(
      path,
      text.replace(find, () => put),
    );
    // One after the other: the first file that notices is enough.
    let failed;
    for (const test of tests) if ((failed = failingTests([test]))?.length !== 0) break;
    writeFileSync(path, text);
    if (failed === undefined) throw new Error(`${name}: no test in ${tests.join(', ')}`);
    if (failed.length === 0) survived += 1;
    console.log(failed.length === 0 ? `SURVIVED without ${name}` : `removed ${name}: ${failed.length} failed`);
    for (const each of failed.slice(0, 3)) console.log(`    ${each}`);
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}
console.log(survived === 0 ? 'every mechanism is noticed' : `${survived} mechanisms are not noticed`);
process.exitCode = survived === 0 ? 0 : 1;
