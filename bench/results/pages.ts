import { judge } from '../bars.js';
import { readable, verdictTable, workloadTable } from '../report.js';
import { behindNetworkName, NETWORK } from '../network-name.js';
import { figure, figureOf, workloadsOf, type Results, type Run } from './results.js';

/* The parts of the pages that have figures of the benchmark. A page marks them: `<!-- bench:tables -->`, `<!-- bench:end -->`. */

const OURS = 'holdfast withLock';
const HOT = 'hot lock, ';

const PARTS: Readonly<Record<string, (results: Results) => string>> = {
  runs,
  remember,
  tables: (results) => tables(results, (name) => !name.startsWith(HOT) && !name.endsWith(NETWORK)),
  'hot-tables': (results) => tables(results, (name) => name.startsWith(HOT) && !name.endsWith(NETWORK)),
  'network-tables': (results) => tables(results, (name) => name.endsWith(NETWORK)),
  bars: (results) => verdictTable(judge([...workloadsOf(results).values()].flat())),
  peers,
  gains,
};

/** The pages that have such parts. */
export const BENCH_PAGES = ['README.md', 'docs/performance.md', 'docs/hot-locks.md'];

/** The text of a page, with these results. */
export function withFigures(page: string, results: Results): string {
  return page.replace(/^<!-- bench:([\w-]+) -->\n[^]*?^<!-- bench:end -->$/gm, (_, name: string) => {
    const part = PARTS[name];
    if (part === undefined) throw new Error(`the benchmark has no part ${name}`);
    return `<!-- bench:${name} -->\n${part(results)}\n<!-- bench:end -->`;
  });
}

function tables(results: Results, isWanted: (workload: string) => boolean): string {
  const wanted = [...workloadsOf(results)].filter(([name]) => isWanted(name));
  return wanted.length === 0 ? 'Not measured yet.' : wanted.map(([, rows]) => workloadTable(rows)).join('\n\n');
}

const settingOf = ({ date, commit, node, redis, machine, quick }: Run): string =>
  `${date}, commit \`${commit}\`, Node.js ${node.replace('v', '')}, Redis ${redis}, ${machine}${quick ? ', `--quick`' : ''}`;

/** When and where the rows were measured. The setting with most rows comes first. */
function runs(results: Results, ofWorkload: (name: string) => boolean = () => true): string {
  const measured = new Map<string, Set<string>>();
  for (const run of results.runs) {
    const names = measured.get(settingOf(run)) ?? new Set();
    for (const { workload } of run.rows) if (ofWorkload(workload)) names.add(workload);
    if (names.size > 0) measured.set(settingOf(run), names);
  }
  return [...measured]
    .sort(([, one], [, other]) => other.size - one.size)
    .map(([setting, names], at) => (at === 0 ? `- ${setting}` : `- ${setting}: ${[...names].join('; ')}`))
    .join('\n');
}

/** The smallest and the largest of some figures, such as "0.95 to 1". */
function range(...values: number[]): string {
  const [least, most] = [Math.min(...values), Math.max(...values)].map((value) => readable(Number(value.toFixed(2))));
  return least === most ? least! : `${least} to ${most}`;
}

function remember(results: Results): string {
  const ofRaw = (workload: string): string =>
    range(...[OURS, 'holdfast lock/unlock'].map((subject) => figure(results, workload, subject, 'of raw')));
  const fair = figure(results, 'fair lock, 4 processes x 10, hold 1 ms', 'holdfast fair lock', 'of plain');
  const replicated = ['cluster: 1 flow', 'cluster: 100 flows, distinct keys'].map((workload) =>
    range(figure(results, workload, 'cluster of 3 with replicas, acks 1', 'of one server')),
  );
  const oneCore = figureOf(results, '1 flow, all on one core', OURS, 'of raw');
  const onOneCore =
    oneCore === undefined ? '' : `; ${ofRaw('1 flow, all on one core')} if client and server share one core`;
  return table([
    ['', ''],
    [
      'A free lock',
      `With one flow, ${ofRaw('1 flow')} of the rate of two bare scripts${onOneCore}. With 100 flows, ` +
        `${ofRaw('100 flows, distinct keys')} of it, because the client sends the commands of one turn of the event loop together.`,
    ],
    [
      'Waiters',
      'The next waiter is inside one message and one round trip after a release: ' +
        `${readable(figure(results, 'hand-off, 1 waiter', OURS, 'p50 ms'))} ms at p50 on this machine.`,
    ],
    ['Waiting', 'A waiting call sends nothing.'],
    ['Renewal', '100 locks in one request, with two commands for each lock (three before Redis 7.0).'],
    ['Fair lock', `${range(fair)} of the rate of the plain lock between processes.`],
    [
      'Replicas',
      `Each grant waits for a replica: ${replicated[0]} of the rate of one server with one flow, ${replicated[1]} with 100 flows.`,
    ],
  ]);
}

/** The rows of the README: what was measured, the workload, the figure and its unit. */
const PEER_ROWS = [
  ['One waiter enters after a release, p50', 'hand-off, 1 waiter', 'p50 ms', ' ms'],
  ['50 calls at once for one lock, held for 1 ms: sections per second', 'burst, 50 flows, hold 1 ms', 'sections/s', ''],
  ['100 calls at once, each for another lock: sections per second', '100 flows, distinct keys', 'sections/s', ''],
  ['1,000 calls wait for a held lock: requests per second', '1,000 wait on a held key', 'requests/s', ''],
  ['10,000 locks held for a minute: renewal requests', '10,000 locks held for a minute', 'renewal requests', ''],
] as const;

function peers(results: Results): string {
  const rows = PEER_ROWS.map(([what, workload, name, unit]) => [
    what,
    ...[OURS, 'redlock', 'redis-semaphore'].map((subject) => readable(figure(results, workload, subject, name)) + unit),
  ]);
  return table([['Measured', 'Holdfast', 'redlock', 'redis-semaphore'], ...rows], 'figures');
}

/** The rows of docs/hot-locks.md: what was measured, the workload and the subject with the option. */
const GAIN_ROWS = [
  ['50 calls, empty sections, `local: 20`', '1 x 50, hold 0', 'holdfast, local: 20'],
  ['50 calls, 1 ms in the section, `local: 20`', '1 x 50, hold 1 ms', 'holdfast, local: 20'],
  ['50 calls, 1 ms in the section, delay, `local: 20`', behindNetworkName('1 x 50, hold 1 ms'), 'holdfast, local: 20'],
  ['1 loop, empty sections, `keep: 500`', '1 flow', 'holdfast, keep: 500'],
  ['1 loop, empty sections, release in the background', '1 flow', 'holdfast, release in the background'],
  [
    '1 loop, empty sections, delay, release in the background',
    behindNetworkName('1 flow'),
    'holdfast, release in the background',
  ],
] as const;

function gains(results: Results): string {
  const rows = GAIN_ROWS.map(([what, shape, option]) => [
    what,
    ...['holdfast', option].map((subject) => readable(figure(results, HOT + shape, subject, 'sections/s'))),
  ]);
  const measured = runs(results, (name) => name.startsWith(HOT));
  return `${table([['', 'Default', 'With the option'], ...rows], 'figures')}\n\nMeasured:\n\n${measured}`;
}

/** The first column has texts; the others have texts, or figures to the right. */
function table([head, ...rows]: readonly (readonly string[])[], others: 'texts' | 'figures' = 'texts'): string {
  const line = (cells: readonly string[]): string =>
    `|${cells.map((cell) => (cell === '' ? ' ' : ` ${cell} `)).join('|')}|`;
  const rule = head!.map((_, at) => (at > 0 && others === 'figures' ? '---:' : '---'));
  return [head!, rule, ...rows].map(line).join('\n');
}
