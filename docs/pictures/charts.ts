import { FAINT, RULE, WORKER_COLORS } from '../../examples/demo/palette.js';
import { figure as exact, workloadsOf, type Results } from '../../bench/results/results.js';
import { readableNumber } from '../../bench/report.js';
import { Svg } from './svg.js';

/* Charts of the figures in bench/results. They have no figures of their own. */

/** As the tables have it. */
const figure = (...of: Parameters<typeof exact>): number => readableNumber(exact(...of));

const SUBJECTS = [
  ['holdfast withLock', 'Holdfast'],
  ['redlock', 'redlock'],
  ['redis-semaphore', 'redis-semaphore'],
] as const;

const PANELS = [
  {
    title: 'A waiter enters after a release',
    unit: 'ms, p50; less is better',
    workload: 'hand-off, 1 waiter',
    column: 'p50 ms',
  },
  {
    title: '50 calls at once, held for 1 ms',
    unit: 'sections per second; more is better',
    workload: 'burst, 50 flows, hold 1 ms',
    column: 'sections/s',
  },
  {
    title: '100 flows, a lock each',
    unit: 'sections per second; more is better',
    workload: '100 flows, distinct keys',
    column: 'sections/s',
  },
  {
    title: '1,000 calls wait for a held lock',
    unit: 'requests per second; less is better',
    workload: '1,000 wait on a held key',
    column: 'requests/s',
  },
] as const;

/** Holdfast and its peers, four panels. */
export function drawPeers(results: Results): string {
  const [width, panelWidth, panelHeight] = [860, 406, 128];
  const svg = new Svg(
    width,
    62 + Math.ceil(PANELS.length / 2) * panelHeight,
    'Bars: Holdfast beside redlock and redis-semaphore, in four workloads.',
  );
  svg.title('Holdfast and its peers, one run of npm run bench');
  PANELS.forEach(({ title, unit, workload, column }, at) => {
    const [left, top] = [24 + (at % 2) * (panelWidth + 12), 62 + Math.floor(at / 2) * panelHeight];
    const values = SUBJECTS.map(([subject]) => figure(results, workload, subject, column));
    svg.text(left, top + 6, title, 'font-weight="600"');
    svg.faint(left, top + 22, unit);
    values.forEach((value, row) => {
      bar(svg, {
        left,
        y: top + 34 + row * 22,
        name: SUBJECTS[row]![1],
        value,
        share: value / Math.max(...values),
        width: 220,
        color: row,
      });
    });
  });
  return svg.toString();
}

/** The rate of Holdfast as a multiple of Redisson's. */
export function drawBesideRedisson(results: Results): string {
  const rows = [...workloadsOf(results)].flatMap(([name, measured]) =>
    /^beside Redisson: (?!.*network)/.test(name) && measured.some(({ figures }) => 'x Redisson' in figures)
      ? [name]
      : [],
  );
  const values = rows.map((workload) => figure(results, workload, 'holdfast', 'x Redisson'));
  const svg = new Svg(
    860,
    78 + rows.length * 22,
    'Bars: the rate of Holdfast as a multiple of the rate of Redisson, for each workload.',
  );
  svg.title('Sections per second, as a multiple of Redisson 4.7.0');
  const [left, width, most] = [24, 400, Math.max(...values)];
  values.forEach((value, row) => {
    const name = rows[row]!.replace('beside Redisson: ', '');
    bar(svg, { left, y: 54 + row * 22, name, value, share: value / most, width, color: 0, label: 290 });
  });
  const one = left + 290 + width / most;
  svg.line([one, 48], [one, 58 + rows.length * 22], `stroke="${FAINT}" stroke-dasharray="2 4"`);
  svg.faint(one, 72 + rows.length * 22, 'Redisson', 'text-anchor="middle"');
  return svg.toString();
}

interface BarOptions {
  readonly left: number;
  readonly y: number;
  readonly name: string;
  readonly value: number;
  readonly share: number;
  readonly width: number;
  readonly color: number;
  readonly label?: number;
}

function bar(svg: Svg, { left, y, name, value, share, width, color, label = 112 }: BarOptions): void {
  svg.text(left, y + 12, name, 'font-size="12"');
  svg.rect(left + label, y, width, 16, `fill="${RULE}" opacity="0.5"`);
  svg.rect(
    left + label,
    y,
    Math.max(1, share * width),
    16,
    `rx="2" fill="${color === 0 ? WORKER_COLORS[0] : '#a6b0bd'}"`,
  );
  svg.text(left + label + width + 8, y + 12, value.toLocaleString('en-US'), 'font-size="12"');
}
