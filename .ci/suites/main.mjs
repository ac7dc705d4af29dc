// @ts-check
import { spawnSync } from 'node:child_process';
import { SUITES } from './suites.mjs';
import { runTwoAtATime } from './two-at-a-time.mjs';

/*
 * npm run suite: lists the suites. `npm run suite -- NAME` runs one, and passes further words on to it.
 */
const [name, ...words] = process.argv.slice(2);
const suite = name === undefined ? undefined : SUITES[name];
if (suite === undefined) {
  const width = Math.max(...Object.keys(SUITES).map(({ length }) => length));
  const rows = Object.entries(SUITES).map(([each, { does }]) => `  ${each.padEnd(width)}  ${does}`);
  console.log(`${name === undefined ? '' : `There is no suite "${name}". `}npm run suite -- NAME\n${rows.join('\n')}`);
  process.exit(name === undefined ? 0 : 2);
}

/** @param {string} command @param {readonly string[]} further @returns {number} */
function run(command, further = []) {
  const [program = '', ...args] = command.split(' ');
  const env = { ...process.env, ...suite?.env };
  const { status, error } = spawnSync(program, [...args, ...further], { stdio: 'inherit', env });
  if (error !== undefined) throw error;
  return status ?? 1;
}

if (suite.build !== false) {
  const status = run('npm run --silent build');
  if (status !== 0) process.exit(status);
}
if (suite.independent === true && words.length > 0) {
  console.log(`npm run suite -- ${name} takes no further words`);
  process.exit(2);
}
if (suite.independent === true) process.exit(await runTwoAtATime(suite.run, { ...process.env, ...suite.env }));
for (const [index, command] of suite.run.entries()) {
  const status = run(command, index === suite.run.length - 1 ? words : []);
  if (status !== 0) process.exit(status);
}
