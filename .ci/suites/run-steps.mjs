// @ts-check
// npm run suite -- gate, all and touched: several steps, and a summary with a line for each. A step that did not run has
// failed, unless its machine lacks what it needs.
//   gate                            what every change has to pass, as .ci/run runs it
//   all                             every step
//   touched [COMMIT]                the steps that a change needs beside the gate (touched.mjs). The change is against COMMIT;
//                                   without it, against the merge base with main.
//   --from STEP, --only STEP,STEP   a part of these steps
import { execFileSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { runSteps } from './runner.mjs';
import { ALL, GATE, STEPS } from './steps.mjs';
import { stepsFor } from './touched.mjs';

/** @param {string} message @returns {never} */
function refuse(message) {
  console.error(message);
  process.exit(2);
}

/** @param {string[]} args */
const git = (...args) => execFileSync('git', args, { encoding: 'utf8' }).trim();

/** The steps that the change needs. @param {string} base @returns {string[]} */
function touchedSince(base) {
  const changed = git('-c', 'core.quotePath=false', 'diff', '--name-only', '--no-renames', base);
  const added = git('-c', 'core.quotePath=false', 'ls-files', '--others', '--exclude-standard');
  const paths = [...changed.split('\n'), ...added.split('\n')].filter((path) => path !== '');
  const { steps, unknown } = stepsFor(paths);
  if (unknown.length > 0) refuse(`no row of .ci/suites/touched.mjs covers ${unknown.join(', ')}: add one`);
  console.log(
    `The change since ${base} touches ${paths.length} files. Beside the gate: ${[...steps].join(', ') || 'no step'}`,
  );
  return Object.keys(STEPS).filter((name) => steps.has(name));
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { from: { type: 'string' }, only: { type: 'string' } },
});
const [which, base, ...more] = positionals;
if (more.length > 0 || (base !== undefined && which !== 'touched'))
  refuse(`unexpected: ${positionals.slice(1).join(' ')}`);
const names =
  which === 'gate'
    ? GATE
    : which === 'all'
      ? ALL
      : which === 'touched'
        ? touchedSince(base ?? git('merge-base', 'HEAD', 'main'))
        : refuse('gate, all or touched?');

const only = values.only?.split(',') ?? names;
const from = values.from ?? names[0];
const unknown = [...only, ...(from === undefined ? [] : [from])].filter((name) => !names.includes(name));
if (unknown.length > 0) refuse(`there is no step ${unknown.join(', ')}; the steps are ${names.join(', ')}`);
const chosen = names.slice(from === undefined ? 0 : names.indexOf(from)).filter((name) => only.includes(name));
process.exitCode = await runSteps(Object.fromEntries(Object.entries(STEPS).filter(([name]) => chosen.includes(name))));
