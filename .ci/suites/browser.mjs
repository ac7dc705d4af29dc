// @ts-check
// npm run suite -- browser: builds the package and the site, and runs the tests that need a browser. Arguments go to jest.
// Without a browser it says how to install one and exits with 3.
import { spawnSync } from 'node:child_process';
import { ADVICE, findChromium } from '../../tests/support/browser/chromium.mjs';

const NO_BROWSER = 3;

/** @param {string[]} args */
const npm = (...args) => spawnSync('npm', ['run', '--silent', ...args], { stdio: 'inherit' }).status ?? 1;

const chromium = findChromium();
if (chromium === undefined) {
  console.log(`not run: there is no browser on this machine.\n${ADVICE}`);
  process.exit(NO_BROWSER);
}
console.log(`Chromium: ${chromium}`);
const jest = ['jest', '--', '--selectProjects', 'browser', '--maxWorkers=2', ...process.argv.slice(2)];
// TypeDoc exits with 3, too, when it fails.
process.exitCode = npm('docs') === 0 && npm(...jest) === 0 ? 0 : 1;
