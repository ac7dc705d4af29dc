/*
 * Several processes contend for the same orders. One of them is killed while it holds a lock, one loses its lease by a
 * blocked event loop. At the end every claim is checked; the exit code is 1 if one does not hold.
 *
 *   --ui                    serves the page of the locks meanwhile, and prints its link
 *   HOLDFAST_DEMO_SECONDS   how long they contend (default 12, with --ui 60)
 *   HOLDFAST_DEMO_LIVE      1 or 0: redraw in place, or plain lines (default: whether the output is a terminal)
 *   HOLDFAST_SEED           repeats the random choices of a run
 */
import { randomInt } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startRedisServer } from '../../tests/support/servers/redis-server.mjs';
import { checks } from './checks.js';
import { LiveScreen } from './live-screen.js';
import { openPage } from './page.js';
import { PlainLines } from './plain-lines.js';
import { Scenario } from './scenario.js';
import { drawSvg } from './svg.js';

const hasPage = process.argv.includes('--ui');
const seconds = Number(process.env.HOLDFAST_DEMO_SECONDS ?? (hasPage ? 60 : 12));
if (!(seconds >= 1)) throw new RangeError('HOLDFAST_DEMO_SECONDS must be a number of at least 1');
const live = (process.env.HOLDFAST_DEMO_LIVE ?? (process.stdout.isTTY ? '1' : '0')) === '1';
const seed = process.env.HOLDFAST_SEED ?? String(randomInt(2 ** 31));
// For the test that the checks can fail: somebody frees the locks under their holders.
const sabotage = process.env.HOLDFAST_DEMO_SABOTAGE === 'overlap';

const server = await startRedisServer();
console.log(`Random choices: seed ${seed} (HOLDFAST_SEED=${seed} repeats them)\n`);
const closePage = hasPage ? await openPage(server.url) : undefined;
const scenario = new Scenario({ redisUrl: server.url, seconds, seed, sabotage });
const view = live
  ? new LiveScreen(scenario.timeline, process.stdout)
  : new PlainLines(scenario.timeline, (line) => console.log(line));
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    view.stop();
    scenario.kill();
    void closePage?.();
    void server.stop().finally(() => process.exit(signal === 'SIGINT' ? 130 : 143));
  });
}

await scenario.open();
const run = await scenario.run();
view.stop();
await closePage?.();
await server.stop();

const results = checks(run);
const width = Math.max(...results.map(({ name }) => name.length));
console.log('\nSummary');
for (const { ok, name, found } of results)
  console.log(`  ${ok ? 'ok    ' : 'FAILED'}  ${name.padEnd(width)}  ${found}`);

const file = join(mkdtempSync(join(tmpdir(), 'holdfast-demo-')), 'timeline.svg');
writeFileSync(file, drawSvg(run.timeline, results));
console.log(`\nTimeline: ${file}`);

const failed = results.filter(({ ok }) => !ok);
console.log(failed.length === 0 ? 'All checks passed.' : `${failed.length} of ${results.length} checks failed.`);
process.exitCode = failed.length === 0 ? 0 : 1;
