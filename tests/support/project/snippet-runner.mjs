// @ts-check
// Runs the modules that its parent names, one after the other, and sends back their output. One process runs all of
// them, because a start of a process for each would take most of the time.
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { format, inspect } from 'node:util';

const LOOK_MS = 10;
const MOST_MS = 5_000;

/** @type {string[]} */
let lines = [];
console.log = (...values) => lines.push(...format(...values).split('\n'));

/**
 * Lines may still come when the module has been evaluated: from a listener, for example.
 * @param {number} count
 */
async function atLeast(count) {
  for (let waited = 0; lines.length < count && waited < MOST_MS; waited += LOOK_MS) await pause(LOOK_MS);
}

process.on('message', (/** @type {{ path: string, count: number }} */ { path, count }) => {
  lines = [];
  import(pathToFileURL(path).href)
    .then(() => atLeast(count))
    .then(
      () => process.send?.({ lines }),
      (/** @type {unknown} */ error) => process.send?.({ lines, error: inspect(error) }),
    );
});
