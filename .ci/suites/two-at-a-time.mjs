// @ts-check
import { spawn } from 'node:child_process';

/**
 * Runs the command. When it has ended, prints its output as a whole, and the time that it took.
 *
 * @param {string} command
 * @param {NodeJS.ProcessEnv} env
 * @param {(text: string) => void} print
 * @returns {Promise<number>} its status
 */
async function run(command, env, print) {
  const begun = performance.now();
  print(`${command} ...`);
  const [program = '', ...args] = command.split(' ');
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (/** @type {string} */ text) => (output += text));
  /** @type {number} */
  const status = await new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve(code ?? 1));
  });
  const how = status === 0 ? '' : `, FAILED with status ${status}`;
  const seconds = Math.round((performance.now() - begun) / 1000);
  print(`${output.trimEnd()}\n${command} (${seconds} s${how})`.trimStart());
  return status;
}

/**
 * Runs independent commands, two at a time. None begins after one has failed.
 *
 * @param {readonly string[]} commands
 * @param {NodeJS.ProcessEnv} [env]
 * @param {(text: string) => void} [print]
 * @returns {Promise<number>} the first status that is not 0, or 0
 */
export async function runTwoAtATime(commands, env = process.env, print = console.log) {
  const left = [...commands];
  let failed = 0;
  const runNext = async () => {
    for (let command = left.shift(); command !== undefined && failed === 0; command = left.shift()) {
      const status = await run(command, env, print);
      failed ||= status;
    }
  };
  await Promise.all([runNext(), runNext()]);
  return failed;
}
