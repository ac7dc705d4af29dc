import { ALARM, FAINT, INK, RULE, WORKER_COLORS } from '../../examples/demo/palette.js';
import { Svg } from './svg.js';

/** One row of a sequence: a message from one actor to another, or a note beside an actor. */
type Step =
  | {
      readonly from: string;
      readonly to: string;
      readonly text: string;
      /** `reply` and `message` are dashed; a `lost` one does not arrive; a `late` one is drawn as a warning. */
      readonly kind?: 'request' | 'reply' | 'message' | 'lost' | 'late';
    }
  | { readonly at: string; readonly note: string }
  | { readonly rule: string };

export interface Sequence {
  readonly title: string;
  readonly description: string;
  readonly actors: readonly string[];
  readonly steps: readonly Step[];
  /** Stretches of an actor's line during which it holds the lock: the first and the last row, from 0. */
  readonly holds: readonly { readonly actor: string; readonly from: number; readonly to: number }[];
}

const WIDTH = 860;
const ROW = 38;
const TOP = 104;

/** A sequence diagram: time runs down, actors stand side by side. */
export function drawSequence({ title, description, actors, steps, holds }: Sequence): string {
  const height = TOP + steps.length * ROW + 20;
  const svg = new Svg(WIDTH, height, description);
  const gap = (WIDTH - 220) / (actors.length - 1);
  const x = (actor: string): number => {
    const at = actors.indexOf(actor);
    if (at < 0) throw new Error(`${title}: there is no actor "${actor}"`);
    return 110 + at * gap;
  };
  const y = (row: number): number => TOP + row * ROW + 20;
  svg.title(title);
  for (const actor of actors) {
    svg.line([x(actor), TOP - 22], [x(actor), height - 14], `stroke="${RULE}" stroke-width="2"`);
    svg.rect(x(actor) - 84, TOP - 46, 168, 26, `rx="4" fill="#f5f7fa" stroke="${RULE}"`);
    svg.text(x(actor), TOP - 28, actor, 'text-anchor="middle" font-weight="600"');
  }
  for (const { actor, from, to } of holds) {
    const color = WORKER_COLORS[actors.indexOf(actor) % WORKER_COLORS.length]!;
    svg.rect(x(actor) - 6, y(from), 12, y(to) - y(from), `rx="3" fill="${color}" opacity="0.75"`);
  }
  steps.forEach((step, row) => {
    if ('rule' in step) {
      svg.line([24, y(row) - 8], [WIDTH - 24, y(row) - 8], `stroke="${FAINT}" stroke-dasharray="2 4"`);
      svg.rect(24, y(row) - 4, step.rule.length * 6.3, 16, 'fill="#ffffff"');
      svg.faint(24, y(row) + 8, step.rule);
    } else if ('note' in step) {
      const width = step.note.length * 6.4 + 20;
      const left = Math.min(Math.max(x(step.at) - width / 2, 10), WIDTH - width - 10);
      svg.rect(left, y(row) - 16, width, 23, `rx="4" fill="#fff8e6" stroke="#f0d999"`);
      svg.text(left + width / 2, y(row), step.note, 'text-anchor="middle" font-size="12"');
    } else {
      arrow(svg, x(step.from), x(step.to), y(row), step.text, step.kind ?? 'request');
    }
  });
  return svg.toString();
}

function arrow(
  svg: Svg,
  from: number,
  to: number,
  y: number,
  text: string,
  kind: NonNullable<Extract<Step, { from: string }>['kind']>,
): void {
  const color = kind === 'lost' || kind === 'late' ? ALARM : INK;
  const dash = kind === 'request' || kind === 'late' ? '' : ' stroke-dasharray="5 4"';
  const sign = Math.sign(to - from);
  const end = kind === 'lost' ? from + (to - from) * 0.62 : to - sign * 8;
  svg.line([from + sign * 8, y], [end, y], `stroke="${color}" stroke-width="1.5"${dash}`);
  if (kind === 'lost') {
    svg.path(`M${end - 5} ${y - 5}l10 10m0 -10l-10 10`, `stroke="${ALARM}" stroke-width="2"`);
  } else {
    svg.path(`M${end} ${y}l${-sign * 9} -4.5v9z`, `fill="${color}"`);
  }
  svg.text((from + to) / 2, y - 6, text, `text-anchor="middle" font-size="12" fill="${color}"`);
}
