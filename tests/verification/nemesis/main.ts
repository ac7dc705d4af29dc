import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { findRedisBinary } from '../../support/servers/redis-binary.mjs';
import { KINDS } from './kinds.js';
import { runNemesis } from './nemesis.js';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '2' },
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    topology: { type: 'string', default: 'single' },
    kinds: { type: 'string' },
    hot: { type: 'boolean', default: false },
    planned: { type: 'boolean', default: false },
    history: { type: 'string' },
    'shrink-minutes': { type: 'string', default: '6' },
  },
});
const topology = (['single', 'cluster', 'sentinel'] as const).find((name) => name === values.topology);
if (!topology) throw new Error(`no topology "${values.topology}": there are single, cluster and sentinel`);
const kinds = values.kinds?.split(',').map((given) => {
  const kind = KINDS.find((each) => each === given);
  if (!kind) throw new Error(`no kind "${given}": there are ${KINDS.join(', ')}`);
  return kind;
});
process.env['HOLDFAST_REDIS_BINARY'] ??= (await findRedisBinary()).path;
const report = await runNemesis({
  minutes: Number(values.minutes),
  seed: values.seed,
  topology,
  ...(kinds && { kinds }),
  planned: values.planned,
  hot: values.hot,
  shrinkMinutes: Number(values['shrink-minutes']),
  historyFile: values.history,
  say: (line) => console.log(line),
});
console.log(JSON.stringify(report, undefined, 2));
process.exitCode = report.violations > 0 ? 1 : 0;
