// @ts-check
import { spawnSync } from 'node:child_process';
import { SUITES } from './suites.mjs';

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

const commands = [...(suite.build === false ? [] : ['npm run --silent build']), ...suite.run];
for (const [index, command] of commands.entries()) {
  const status = run(command, index === commands.length - 1 ? words : []);
  if (status !== 0) process.exit(status);
}
