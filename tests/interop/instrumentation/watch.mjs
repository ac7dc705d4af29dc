// @ts-check
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('./program.mjs', import.meta.url));
const LIMIT_MS = 25_000;

/** Messages of an agent without a configuration or a receiver. */
const SETTINGS = {
  NEW_RELIC_NO_CONFIG_FILE: 'true',
  NEW_RELIC_LICENSE_KEY: '0'.repeat(40),
  NEW_RELIC_APP_NAME: 'test',
  NEW_RELIC_LOG_ENABLED: 'false',
  NEW_RELIC_HOST: '127.0.0.1',
  NEW_RELIC_PORT: '9',
};

/** The commands of each request of the program, at least; all but the waiter's are exact. */
const EXPECTED = { earlier: 3, bare: 2, nested: 4, fair: 2, permits: 3, read: 1, holder: 2, waiter: 3 };
const SECTIONS = 6;

/**
 * Runs the program under an agent and returns the faults. The packages are those of `folder`.
 *
 * @param {string} agent
 * @param {string} folder
 * @param {string} url
 * @param {'late'[]} options
 * @returns {Promise<string[]>}
 */
export function faultsUnder(agent, folder, url, ...options) {
  return new Promise((resolve, reject) => {
    const child = fork(PROGRAM, [agent, folder, url, ...options], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: { ...process.env, ...SETTINGS, NODE_OPTIONS: '' },
      timeout: LIMIT_MS,
    });
    let printed = '';
    /** @type {import('./program.mjs').Told | undefined} */
    let told;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (/** @type {Buffer} */ chunk) => (printed += chunk.toString()));
    }
    child.on('message', (message) => (told = /** @type {import('./program.mjs').Told} */ (message)));
    child.once('error', reject);
    child.once('close', (code, signal) => {
      const faults = told === undefined ? ['it did not come to its end'] : faultsIn(told);
      if (code !== 0) faults.push(`it ended with ${code ?? signal}`);
      if (printed !== '') faults.push(`printed: ${printed}`);
      resolve(faults);
    });
  });
}

/** @param {import('./program.mjs').Told} told */
function faultsIn({ sections, seen, afterwards }) {
  const faults = [];
  if (sections !== SECTIONS) faults.push(`${sections} sections`);
  for (const [request, count] of Object.entries(EXPECTED)) {
    const commands = seen.filter(({ name, parent }) => parent === request && /^(eval|evalsha|exists)$/.test(name));
    const right = request === 'waiter' || request === 'earlier' ? commands.length >= count : commands.length === count;
    if (!right) faults.push(`${commands.length} commands of "${request}" seen, not ${count}`);
  }
  const unwanted = afterwards.filter(({ name }) => name.startsWith('eval'));
  if (unwanted.length > 0) faults.push(`${unwanted.length} commands seen after the agent was stopped`);
  return faults;
}
