import type { OwnerView, TimelineBar } from '../../messages.js';
import { element, shape } from '../parts/dom.js';
import { clientIdOf, duration, visible } from '../../../shared/inspection-words.js';
import { counted } from '../parts/format.js';
import type { Model, WaiterStep } from '../parts/model.js';

/** The window is the shortest of these that shows all that is known, in ms. */
const WINDOWS = [30_000, 60_000, 300_000, 1_800_000];
const LONGEST = 7_200_000;
const TICKS = { wide: 6, narrow: 3, narrowWidth: 420 };
const LANE = { label: 16, bar: 18, gap: 8 };
const WAITING = { height: 26, gap: 18 };
const AXIS = 22;
const MAX_LANES = 8;
const COLORS = 6;

/** The process of a lane. It may become known later than the first bar. */
function laneName(bars: readonly TimelineBar[], owners: readonly OwnerView[]): string {
  const { owner } = bars[0] as TimelineBar;
  const known = [...bars, ...owners.filter((each) => clientIdOf(each.owner) === clientIdOf(owner))];
  const process = known.findLast((each) => each.process !== null)?.process;
  return visible(process == null ? owner : `${process.clientName || process.host} · ${process.pid}`);
}

/** Which process held a lock when, and how many clients waited, as a drawing like that of the demo. */
export class Timeline {
  readonly node = element('div', { class: 'timeline' });
  readonly #drawing = shape('svg', { role: 'img' });
  /** Lanes keep their place and colour for as long as the lock is selected. */
  #lanes: string[] = [];

  constructor(private readonly model: Model) {
    this.node.append(this.#drawing);
  }

  forget(): void {
    this.#lanes = [];
  }

  draw(): void {
    const now = this.model.serverNow();
    const bars = [...this.model.bars.values()];
    const first = Math.min(now, ...bars.map(({ from }) => from), ...this.model.waiterSteps.map(({ at }) => at));
    const span = WINDOWS.find((each) => now - first <= each) ?? LONGEST;
    const width = Math.max(280, Math.floor(this.node.clientWidth));
    const x = (at: number): number => Math.max(0, width * (1 - (now - at) / span));
    const seen = bars.filter(({ to }) => (to ?? now) > now - span);
    for (const { owner } of seen) if (!this.#lanes.includes(clientIdOf(owner))) this.#lanes.push(clientIdOf(owner));
    const lanes = this.#lanes.filter((lane) => seen.some(({ owner }) => clientIdOf(owner) === lane)).slice(-MAX_LANES);

    const owners = this.model.selected?.value.row.owners ?? [];
    const parts: SVGElement[] = [];
    let y = 0;
    for (const lane of lanes) {
      const own = seen.filter(({ owner }) => clientIdOf(owner) === lane);
      const color = `c${this.#lanes.indexOf(lane) % COLORS}`;
      parts.push(shape('text', { class: 'lane', x: 0, y: y + 11 }, laneName(own, owners)));
      y += LANE.label;
      parts.push(shape('rect', { class: 'track', x: 0, y, width, height: LANE.bar, rx: 3 }));
      for (const bar of own) parts.push(...barShapes(bar, x, now, y, color));
      y += LANE.bar + LANE.gap;
    }
    const waiting = waitingShape(this.model.waiterSteps, x, y + WAITING.gap - 2, now);
    if (waiting !== undefined) {
      parts.push(shape('text', { class: 'lane', x: 0, y: y + 11 }, 'waiting clients'), waiting);
      y += WAITING.gap + WAITING.height;
    }
    const height = y + AXIS;
    const grid = ticks(span, width).flatMap(({ at, text, anchor }) => [
      shape('path', { class: 'grid', d: `M${at} 0V${y}` }),
      shape('text', { class: 'tick', x: at, y: y + 15, 'text-anchor': anchor }, text),
    ]);
    this.#drawing.replaceChildren(...grid, ...parts);
    this.#drawing.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.#drawing.setAttribute(
      'aria-label',
      `${counted(seen.length, 'hold')} in the last ${duration(span)}. The list below has the same in words.`,
    );
  }
}

function barShapes(bar: TimelineBar, x: (at: number) => number, now: number, y: number, color: string): SVGElement[] {
  const [from, to] = [x(bar.from), x(bar.to ?? now)];
  const shapes = [
    shape('rect', {
      class: `hold ${color} ${bar.mode}`,
      'data-owner': bar.owner,
      x: from,
      y,
      width: Math.max(1.5, to - from - 0.5),
      height: LANE.bar,
      rx: 2,
    }),
  ];
  // The lock may have been held for longer than it was watched.
  if (!bar.isFromStart) shapes.push(shape('path', { class: 'before', d: `M${from} ${y}l4 3l-4 3l4 3l-4 3l4 3l-4 3` }));
  for (const at of bar.renewals)
    shapes.push(shape('path', { class: 'renewal', d: `M${x(at)} ${y + 2}v${LANE.bar - 4}` }));
  if (bar.holdCount > 1) shapes.push(shape('text', { class: 'times', x: from + 6, y: y + 13 }, `×${bar.holdCount}`));
  if (bar.handedOver) shapes.push(shape('path', { class: `handed ${color}`, d: `M${from - 3} ${y - 6}l6 3l-6 3z` }));
  if (bar.ended !== null && ['expired', 'lost', 'freed'].includes(bar.ended)) {
    shapes.push(shape('path', { class: 'cut', d: `M${to} ${y - 3}v${LANE.bar + 6}` }));
  }
  return shapes;
}

/** How many waited, as steps; `undefined` if no client did. */
function waitingShape(
  steps: readonly WaiterStep[],
  x: (at: number) => number,
  y: number,
  now: number,
): SVGElement | undefined {
  const most = Math.max(0, ...steps.map(({ waiters }) => waiters));
  if (most === 0) return undefined;
  const bottom = y + WAITING.height;
  let path = '';
  for (const [at, step] of steps.entries()) {
    const top = bottom - (step.waiters / most) * WAITING.height;
    path += `${path === '' ? `M${x(step.at)} ${bottom}` : ''}L${x(step.at)} ${top}L${x(steps[at + 1]?.at ?? now)} ${top}`;
  }
  return shape('path', { class: 'waiting', d: `${path}L${x(now)} ${bottom}Z` });
}

function ticks(span: number, width: number): { at: number; text: string; anchor: string }[] {
  const steps = width < TICKS.narrowWidth ? TICKS.narrow : TICKS.wide;
  return Array.from({ length: steps + 1 }, (_, step) => {
    const ago = (span * (steps - step)) / steps;
    const text =
      ago === 0 ? 'now' : span <= 60_000 ? `-${ago / 1_000} s` : `-${Math.round((ago / 60_000) * 10) / 10} min`;
    return { at: (width * step) / steps, text, anchor: step === 0 ? 'start' : ago === 0 ? 'end' : 'middle' };
  });
}
