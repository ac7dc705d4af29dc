// @ts-check
// npm run test:all: every suite that needs no JVM, one after the other. A suite that fails stops none that follow. A
// suite that exits with 3 has found that the machine lacks what it needs.
import { spawnSync } from 'node:child_process';

const SUITES = [
  'test',
  'test:slow',
  'test:topologies',
  'test:soak',
  'test:browser',
  'test:instrumentation',
  'test:runtimes',
];

/** @param {number | null} status */
const resultOf = (status) => (status === 0 ? 'passed' : status === 3 ? 'not run' : 'FAILED');

const results = SUITES.map((suite) => {
  console.log(`\n=== npm run ${suite}`);
  return { suite, result: resultOf(spawnSync('npm', ['run', '--silent', suite], { stdio: 'inherit' }).status) };
});
console.log(`\nSuites:\n${results.map(({ suite, result }) => `  ${suite}: ${result}`).join('\n')}`);
process.exitCode = results.some(({ result }) => result === 'FAILED') ? 1 : 0;
