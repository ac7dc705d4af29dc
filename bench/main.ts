import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { judge } from './bars.js';
import { closeRedissons } from './jvms.js';
import { verdictTable, workloadTable } from './report.js';
import { BenchServer } from './server.js';
import { workloads as besideRedisson } from './workloads/beside-redisson.js';
import { workloads as contended } from './workloads/contended.js';
import { workloads as fairLock } from './workloads/fair-lock.js';
import { workloads as handOff } from './workloads/hand-off.js';
import { workloads as uncontended } from './workloads/uncontended.js';
import { workloads as waiting } from './workloads/waiting.js';
import { workloads as watchdog } from './workloads/watchdog.js';
import type { Row } from './workloads/workload.js';

/*
 * npm run bench -- [--only <pattern>] [--quick] [--json]
 *
 * Holdfast and its peers side by side on one Redis that the bench starts. The built package is measured.
 */

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
  },
});
const only = new RegExp(values.only, 'i');
const chosen = [
  ...uncontended,
  ...contended,
  ...fairLock,
  ...handOff,
  ...waiting,
  ...watchdog,
  ...besideRedisson,
].filter(({ name }) => only.test(name));
// With --json nothing else may be on the standard output.
const say = values.json ? console.error : console.log;

if (chosen.length === 0) throw new Error(`no workload matches ${values.only}; --list names them`);
if (values.list) {
  for (const { name } of chosen) console.log(name);
} else {
  await measure();
}

async function measure(): Promise<void> {
  const rows: Row[] = [];
  {
    await using server = await BenchServer.start(say);
    say(`Node ${process.version}, ${cpus().length} x ${cpus()[0]?.model ?? 'unknown processor'}\n`);
    try {
      for (const workload of chosen) {
        await server.clear();
        const measured = await workload.run({ server, quick: values.quick });
        rows.push(...measured);
        if (measured.length > 0) say(`${workloadTable(measured)}\n`);
      }
    } finally {
      await closeRedissons();
    }
  }
  const verdicts = judge(rows);
  if (values.json) console.log(JSON.stringify({ node: process.version, quick: values.quick, rows, verdicts }, null, 2));
  else if (verdicts.length > 0) console.log(verdictTable(verdicts));
}
