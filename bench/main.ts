import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { judge } from './bars.js';
import { closeRedissons } from './jvms.js';
import { verdictTable, workloadTable } from './report.js';
import { readResults, RESULTS_FILE, withRun, type Run } from './results/results.js';
import { BenchServer } from './server.js';
import { compareBuilds } from './two-builds/compare.js';
import { workloads } from './workloads/all.js';
import type { Row } from './workloads/workload.js';

/*
 * npm run bench -- [--only <pattern>] [--quick] [--json] [--save] [--against <folder>]
 *
 * Holdfast and its peers side by side on one Redis that the bench starts. The built package is measured.
 */

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    /** Writes the rows into results/results.json, of which the guide has its figures. */
    save: { type: 'boolean', default: false },
    /** The folder of another build, to be compared with this one. */
    against: { type: 'string' },
    list: { type: 'boolean', default: false },
  },
});
const only = new RegExp(values.only, 'i');
const chosen = workloads.filter(({ name }) => only.test(name));
// With --json nothing else may be on the standard output.
const say = values.json ? console.error : console.log;

if (values.against !== undefined) {
  await compareBuilds({ folder: values.against, only, quick: values.quick, list: values.list, say });
} else if (chosen.length === 0) {
  throw new Error(`no workload matches ${values.only}; --list names them`);
} else if (values.list) {
  for (const { name } of chosen) console.log(name);
} else {
  await measure();
}

async function measure(): Promise<void> {
  const rows: Row[] = [];
  const machine = `${cpus().length} x ${cpus()[0]?.model ?? 'unknown processor'}`;
  const startedAt = performance.now();
  {
    await using server = await BenchServer.start(say);
    say(`Node ${process.version}, ${machine}\n`);
    const run = {
      date: new Date().toISOString().slice(0, 10),
      commit: commit(),
      node: process.version,
      redis: await server.version(),
      machine,
      quick: values.quick,
    };
    try {
      for (const workload of chosen) {
        await server.clear();
        try {
          const measured = await workload.run({ server, quick: values.quick });
          rows.push(...measured);
          if (measured.length > 0) say(`${workloadTable(measured)}\n`);
        } catch (error) {
          // The other workloads may take an hour, and do not depend on this one.
          console.error(`FAILED: ${workload.name}`, error);
          process.exitCode = 1;
        }
        if (values.save) save({ ...run, rows });
      }
    } finally {
      await closeRedissons();
    }
  }
  const verdicts = judge(rows);
  if (values.json) console.log(JSON.stringify({ node: process.version, quick: values.quick, rows, verdicts }, null, 2));
  else if (verdicts.length > 0) console.log(verdictTable(verdicts));
  say(`${Math.round((performance.now() - startedAt) / 1_000)} s`);
}

function save(run: Run): void {
  if (run.rows.length === 0) return;
  const order = workloads.map(({ name }) => name);
  const digits = (_: string, value: unknown): unknown =>
    typeof value === 'number' ? Number(value.toPrecision(6)) : value;
  writeFileSync(RESULTS_FILE, `${JSON.stringify(withRun(readResults(), run, order), digits, 1)}\n`);
}

/** The last one that changed what is measured. */
function commit(): string {
  const measured = ['--', 'src', 'lua', 'package-lock.json'];
  const git = (...args: string[]): string =>
    execFileSync('git', [...args, ...measured], { cwd: import.meta.dirname + '/..', encoding: 'utf8' }).trim();
  const isChanged = git('status', '--porcelain') !== '';
  return git('log', '-1', '--abbrev=7', '--format=%h') + (isChanged ? ', changed' : '');
}
