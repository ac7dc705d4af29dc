import { FAINT, RULE, WORKER_COLORS } from '../../examples/demo/palette.js';
import { Svg } from './svg.js';

const WIDTH = 860;
const LEFT = 150;
const ROW = 34;
const [FIRST, SECOND] = WORKER_COLORS;

interface Bar {
  readonly from: number;
  readonly to: number;
  readonly text: string;
  readonly as: 'hold' | 'nested' | 'waits';
}

/** The flows of two requests. Time runs to the right, from 0 to 100. */
const FLOWS: readonly {
  readonly name: string;
  readonly indent: number;
  readonly color: string;
  readonly bars: readonly Bar[];
}[] = [
  {
    name: 'request 1',
    indent: 0,
    color: FIRST,
    bars: [{ from: 4, to: 70, text: 'await lock.lock(): hold count 1', as: 'hold' }],
  },
  { name: 'pay()', indent: 1, color: FIRST, bars: [{ from: 10, to: 26, text: 're-enters: 2', as: 'nested' }] },
  { name: 'a()', indent: 1, color: FIRST, bars: [{ from: 30, to: 44, text: 're-enters: 2', as: 'nested' }] },
  {
    name: 'b(), beside a()',
    indent: 1,
    color: FIRST,
    bars: [
      { from: 30, to: 44, text: 'waits for a()', as: 'waits' },
      { from: 44, to: 58, text: 're-enters: 2', as: 'nested' },
    ],
  },
  {
    name: 'request 2',
    indent: 0,
    color: SECOND,
    bars: [
      { from: 12, to: 70, text: 'a stranger: waits', as: 'waits' },
      { from: 70, to: 98, text: 'hold count 1', as: 'hold' },
    ],
  },
];

export function drawOwnership(): string {
  const height = 78 + FLOWS.length * ROW + 34;
  const svg = new Svg(WIDTH, height, 'Code inside a hold re-enters, branches take turns, and another request waits.');
  svg.title('Ownership: which code is inside');
  const x = (at: number): number => LEFT + (at / 100) * (WIDTH - LEFT - 24);
  FLOWS.forEach(({ name, indent, color, bars }, row) => {
    const y = 62 + row * ROW;
    svg.text(24 + indent * 16, y + 17, name, indent === 0 ? 'font-weight="600"' : '');
    svg.line([LEFT, y + 26], [WIDTH - 24, y + 26], `stroke="${RULE}"`);
    for (const { from, to, text, as } of bars) {
      const [fill, ink] = {
        hold: [`${color}"`, '#ffffff'],
        nested: [`${color}" opacity="0.8"`, '#ffffff'],
        waits: ['#eef1f5"', FAINT],
      }[as];
      svg.rect(x(from), y, x(to) - x(from) - 1, 24, `rx="3" fill="${fill}`);
      svg.text((x(from) + x(to)) / 2, y + 16, text, `text-anchor="middle" font-size="12" fill="${ink}"`);
    }
  });
  const end = 62 + FLOWS.length * ROW;
  svg.line([x(70), 52], [x(70), end], `stroke="${FAINT}" stroke-dasharray="2 4"`);
  svg.faint(x(70), end + 16, 'unlock(): count 0, the next owner enters', 'text-anchor="middle"');
  return svg.toString();
}
