import { parseArgs } from 'node:util';
import { buildWorker, missingTools, NO_JVM } from '../java-build.mjs';
import { REDISSON_VERSIONS } from '../jvm.js';
import { findRedisBinary } from '../../../support/servers/redis-binary.mjs';
import { FAIR_HEAD } from './fair-head.js';
import { FaultSetting, type FaultRow } from './fault-setting.js';
import { LOST_REPLIES } from './lost-replies.js';
import { OVERTAKEN_REPLY } from './overtaken-reply.js';
import { OWNERS } from './owners.js';
import { RED_LOCK } from './red-lock.js';
import { SERVERS_AWAY } from './servers-away.js';

/*
 * npm run suite -- failures [-- --only <pattern>] [--redisson <version>]
 *
 * Causes the same fault on the real Redisson and on Holdfast, each on separate servers, and prints both results as a
 * table. Nothing is asserted here: tests/faults and tests/integration test the results of Holdfast.
 */

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    redisson: { type: 'string', default: REDISSON_VERSIONS[0] },
  },
});
const missing = missingTools();
if (missing.length > 0) {
  console.log(`Not run: this needs a JDK (17 or later) and Maven; ${missing.join(' and ')} did not answer.`);
  process.exit(NO_JVM);
}
process.env['HOLDFAST_REDIS_BINARY'] ??= (await findRedisBinary({ say: console.error })).path;
process.env['HOLDFAST_REDISSON'] = values.redisson;
buildWorker(values.redisson);

const only = new RegExp(values.only, 'i');
const rows = [...LOST_REPLIES, ...SERVERS_AWAY, OVERTAKEN_REPLY, ...OWNERS, RED_LOCK, FAIR_HEAD].filter(({ fault }) =>
  only.test(fault),
);

async function outcomeOf(run: (setting: FaultSetting) => Promise<string>): Promise<string> {
  await using setting = new FaultSetting();
  try {
    return await run(setting);
  } catch (error) {
    process.exitCode = 1;
    return `(the run failed: ${String(error)})`;
  }
}

/** Both sides at once: they share nothing. */
async function lineOf(row: FaultRow): Promise<string> {
  const [theirs, ours] = await Promise.all([
    outcomeOf((setting) => row.redisson(setting)),
    outcomeOf((setting) => row.holdfast(setting)),
  ]);
  console.error(`${row.fault}\n  Redisson: ${theirs}\n  Holdfast: ${ours}`);
  return `| ${row.fault} | ${theirs} | ${ours} |`;
}

// Cases that take minutes run beside the others.
const [slow, quick] = [rows.filter(({ slow }) => slow), rows.filter(({ slow }) => !slow)];
const inBackground = slow.map((row) => lineOf(row));
const lines: string[] = [];
for (const row of quick) lines.push(await lineOf(row));
lines.push(...(await Promise.all(inBackground)));
console.log(`| Fault | Redisson ${values.redisson} | Holdfast |\n| --- | --- | --- |\n${lines.join('\n')}`);
process.exit();
