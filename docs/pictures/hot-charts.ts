import { behindNetworkName } from '../../bench/network-name.js';
import { readable } from '../../bench/report.js';
import { workloadsOf, type Results } from '../../bench/results/results.js';
import { RULE, WORKER_COLORS } from '../../examples/demo/palette.js';
import { Svg } from './svg.js';

/* Charts of hot locks and of fleets: bars in groups, on one axis with a unit. They leave out what was not measured. */

const WIDTH = 860;
const LEFT = 232;
const RIGHT = 96;
const ROW = 18;
/** Dark enough on white for small letters. */
const AXIS = '#52606d';
const OTHERS = '#8a94a3';

interface Bar {
  readonly name: string;
  readonly value: number;
  readonly color: string;
}

interface Group {
  readonly name: string;
  readonly bars: readonly Bar[];
}

interface Chart {
  readonly title: string;
  readonly description: string;
  /** Of the axis. */
  readonly unit: string;
  readonly scale: 'linear' | 'log';
  readonly groups: readonly Group[];
}

const NAMES: Readonly<Record<string, readonly [name: string, color: string]>> = {
  holdfast: ['Holdfast, default', WORKER_COLORS[0]],
  'holdfast, local: 20': ['Holdfast, local: 20', WORKER_COLORS[2]],
  'holdfast, keep: 500': ['Holdfast, keep: 500', WORKER_COLORS[2]],
  'holdfast, release in the background': ['Holdfast, release: background', WORKER_COLORS[3]],
  '2 bare scripts': ['two bare scripts', OTHERS],
};

/** The bars of a workload: one for each subject that has the figure. */
function group(results: Results, name: string, workload: string, figure: string): Group {
  const rows = workloadsOf(results).get(workload) ?? [];
  const bars = rows.flatMap(({ subject, figures }): Bar[] => {
    const value = figures[figure];
    // Options that only a decision compares have no name here.
    const isLeftOut = subject.startsWith('holdfast') && NAMES[subject] === undefined;
    if (value === undefined || isLeftOut) return [];
    const [text, color] = NAMES[subject] ?? [subject.replace(/^\(no lock.*/, 'no lock'), OTHERS];
    return [{ name: text, value, color }];
  });
  return { name, bars };
}

const RATE = 'sections per second';

/** With and without `local`. */
export function drawHotRates(results: Results): string {
  const shapes = [
    ['50 calls, empty sections', 'hot lock, 1 x 50, hold 0'],
    ['50 calls, 1 ms in the section', 'hot lock, 1 x 50, hold 1 ms'],
    ['50 calls, 1 ms in the section, network of 1 ms each way', behindNetworkName('hot lock, 1 x 50, hold 1 ms')],
    ['4 processes with 10 calls each, 1 ms in the section', 'hot lock, 4 x 10, hold 1 ms'],
  ] as const;
  return draw({
    title: 'Many calls on one lock: handOff.local',
    description: 'Bars: sections per second on one lock with and without handOff.local, beside other libraries.',
    unit: `${RATE}, logarithmic; more is better`,
    scale: 'log',
    groups: shapes.map(([name, workload]) => group(results, name, workload, 'sections/s')),
  });
}

/** How long the calls wait behind a network. */
export function drawHotWaits(results: Results): string {
  const shapes = [
    ['50 calls, empty sections', 'hot lock, 1 x 50, hold 0'],
    ['50 calls, 1 ms in the section', 'hot lock, 1 x 50, hold 1 ms'],
    ['4 processes with 10 calls each, 1 ms in the section', 'hot lock, 4 x 10, hold 1 ms'],
  ] as const;
  return draw({
    title: 'Waiting behind a network of 1 ms each way',
    description: 'Bars: how long calls wait for one lock behind a network, with and without handOff.local.',
    unit: 'ms until the section begins; less is better',
    scale: 'linear',
    groups: shapes.flatMap(([name, workload]) =>
      [
        ['p50', 'wait p50 ms'],
        ['longest', 'longest wait ms'],
      ].map(([part, figure]) => ours(group(results, `${name}: ${part}`, behindNetworkName(workload), figure!))),
    ),
  });
}

/** Other libraries let the flow that has released enter again at once: half of their calls do not wait at all. */
const ours = ({ name, bars }: Group): Group => ({ name, bars: bars.filter((bar) => bar.name.startsWith('Holdfast')) });

/** One flow alone. */
export function drawHotFlow(results: Results): string {
  const flow = 'hot lock, 1 flow';
  return draw({
    title: 'One loop on one lock: handOff.keep, and release in the background',
    description: 'Bars: sections per second of one loop, with handOff.keep and with a release in the background.',
    unit: `${RATE}, logarithmic; more is better`,
    scale: 'log',
    groups: [
      group(results, 'Empty sections', flow, 'sections/s'),
      group(results, 'Empty sections, network of 1 ms each way', behindNetworkName(flow), 'sections/s'),
    ],
  });
}

/** What a section of a lock costs, by the number of processes that want it. */
export function drawFleet(results: Results): string {
  const subjects = [
    ['holdfast withLock', 'Holdfast', WORKER_COLORS[0]],
    ['redlock', 'redlock', OTHERS],
    ['redis-semaphore', 'redis-semaphore', OTHERS],
  ] as const;
  return draw({
    title: 'One lock, one waiting call in each process, held for 1 ms',
    description: 'Bars: the requests of a section by the number of processes, beside other libraries.',
    unit: 'requests for one section; less is better',
    scale: 'linear',
    groups: [1, 4, 16, 48].map((processes) => {
      const rows = workloadsOf(results).get(`fleet: lock, ${processes} x 1, hold 1 ms`) ?? [];
      const bars = subjects.flatMap(([subject, name, color]): Bar[] => {
        const value = rows.find((row) => row.subject === subject)?.figures['requests/section'];
        return value === undefined ? [] : [{ name, value, color }];
      });
      return { name: `${processes} ${processes === 1 ? 'process' : 'processes'}`, bars };
    }),
  });
}

function draw({ title, description, unit, scale, groups }: Chart): string {
  const shown = groups.filter(({ bars }) => bars.length > 0);
  if (shown.length === 0) throw new Error(`no run has figures for "${title}"`);
  const details = shown
    .map(({ name, bars }) => `${name}: ${bars.map((bar) => `${bar.name} ${readable(bar.value)}`).join(', ')}.`)
    .join(' ');
  const body = shown.reduce((height, { bars }) => height + 34 + bars.length * ROW, 0);
  const svg = new Svg(WIDTH, 78 + body + 40, description, details);
  svg.title(title);
  svg.text(24, 56, unit, `fill="${AXIS}" font-size="12"`);
  const { ticks, x } = axis(
    scale,
    shown.flatMap(({ bars }) => bars.map(({ value }) => value)),
  );
  const bottom = 72 + body;
  for (const tick of ticks) {
    svg.line([x(tick), 70], [x(tick), bottom], `stroke="${RULE}"`);
    svg.text(x(tick), bottom + 18, tick.toLocaleString('en-US'), `fill="${AXIS}" font-size="12" text-anchor="middle"`);
  }
  let y = 72;
  for (const { name, bars } of shown) {
    svg.text(24, y + 18, name, 'font-weight="600"');
    y += 26;
    for (const bar of bars) {
      svg.text(LEFT - 8, y + 12, bar.name, 'font-size="12" text-anchor="end"');
      const width = Math.max(1, x(bar.value) - LEFT);
      svg.rect(LEFT, y + 1, width, ROW - 4, `rx="2" fill="${bar.color}"`);
      svg.text(LEFT + width + 6, y + 12, readable(bar.value), 'font-size="12"');
      y += ROW;
    }
    y += 8;
  }
  return svg.toString();
}

/** From 0, or from a power of ten below the smallest value. */
function axis(scale: Chart['scale'], values: readonly number[]): { ticks: number[]; x(value: number): number } {
  const span = WIDTH - LEFT - RIGHT;
  const most = Math.max(...values);
  if (scale === 'log') {
    const [from, to] = [Math.ceil(Math.log10(Math.min(...values))) - 1, Math.ceil(Math.log10(most))];
    const ticks = Array.from({ length: to - from + 1 }, (_, at) => 10 ** (from + at));
    return { ticks, x: (value) => LEFT + (span * (Math.log10(value) - from)) / (to - from) };
  }
  const power = 10 ** Math.floor(Math.log10(most));
  const step = [0.2, 0.5, 1, 2].map((part) => part * power).find((each) => most / each <= 6)!;
  const ticks = Array.from({ length: Math.ceil(most / step) + 1 }, (_, at) => at * step);
  return { ticks, x: (value) => LEFT + (span * value) / ticks.at(-1)! };
}
