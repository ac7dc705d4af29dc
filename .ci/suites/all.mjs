// @ts-check
// npm run test:all: every suite that needs no JVM, one after the other. A suite that fails stops none that follow. A
// suite that exits with 3 has found that the machine lacks what it needs.
import { spawnSync } from 'node:child_process';
import { WITHOUT_JVM } from './suites.mjs';

/** @param {number | null} status */
const resultOf = (status) => (status === 0 ? 'passed' : status === 3 ? 'not run' : 'FAILED');

const results = [['test'], ...WITHOUT_JVM.map((name) => ['run', '--silent', 'suite', '--', name])].map((args) => {
  const suite = args.at(-1);
  console.log(`\n=== ${suite}`);
  return { suite, result: resultOf(spawnSync('npm', args, { stdio: 'inherit' }).status) };
});
console.log(`\nSuites:\n${results.map(({ suite, result }) => `  ${suite}: ${result}`).join('\n')}`);
process.exitCode = results.some(({ result }) => result === 'FAILED') ? 1 : 0;
