// @ts-check
// npm run test:all: every suite that needs no JVM, one after the other. A suite that fails stops none that follow.
import { spawnSync } from 'node:child_process';

const SUITES = ['test', 'test:slow', 'test:topologies', 'test:soak', 'test:instrumentation', 'test:runtimes'];

const results = SUITES.map((suite) => {
  console.log(`\n=== npm run ${suite}`);
  return { suite, passed: spawnSync('npm', ['run', '--silent', suite], { stdio: 'inherit' }).status === 0 };
});
console.log(
  `\nSuites:\n${results.map(({ suite, passed }) => `  ${suite}: ${passed ? 'passed' : 'FAILED'}`).join('\n')}`,
);
process.exitCode = results.every(({ passed }) => passed) ? 0 : 1;
