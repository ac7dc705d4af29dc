import { expect, test } from '@jest/globals';
import { checks, handOffLatencies, type Run } from '../../../examples/demo/checks.js';
import { frame } from '../../../examples/demo/frame.js';
import { Register, type Section } from '../../../examples/demo/register.js';
import { drawSvg } from '../../../examples/demo/svg.js';
import { Timeline } from '../../../examples/demo/timeline.js';

interface Stay {
  readonly worker: string;
  readonly order: string;
  readonly owner: string;
  readonly wanted: number;
  readonly from: number;
  readonly until: number;
  readonly left?: number;
}

/** A run by hand, the times are ms: two sections with a hand-off, one killed inside, one that lost its lease. */
class HandMadeRun implements Run {
  readonly register = new Register();
  readonly timeline = new Timeline(['o1', 'o2', 'o3']);
  killed: string | undefined = 'dead';
  blocked: string | undefined = 'late';
  failures: string[] = [];
  keysLeft = 0;

  constructor() {
    this.timeline.begin(0, 4_000);
    for (const worker of ['w1', 'w2']) this.timeline.add(worker, 1, ['a']);
    this.stay({ worker: 'w1', order: 'o1', owner: 'first', wanted: 0, from: 1, until: 3_001, left: 50 });
    this.stay({ worker: 'w2', order: 'o1', owner: 'second', wanted: 10, from: 52, until: 3_052, left: 100 });
    this.stay({ worker: 'w2', order: 'o2', owner: 'dead', wanted: 200, from: 200, until: 1_200 });
    this.register.died('w2', 400);
    this.timeline.died('w2', 400);
    this.stay({ worker: 'w1', order: 'o2', owner: 'heir', wanted: 300, from: 1_210, until: 4_000, left: 1_300 });
    this.stay({ worker: 'w1', order: 'o3', owner: 'late', wanted: 2_000, from: 2_000, until: 2_600, left: 3_200 });
    Object.assign(this.section('late'), { signals: 1, losses: 1, unlockCode: 'ERR_LOCK_LOST' });
    for (const order of ['o1', 'o2', 'o3']) this.register.write(order, this.register.read(order) + 1);
  }

  stay({ worker, order, owner, wanted, from, until, left }: Stay): void {
    const flow = 'a';
    const { timeline } = this;
    const event = { say: 'event', order, owner } as const;
    timeline.report(worker, { say: 'wants', order, flow, at: wanted });
    timeline.report(worker, { ...event, event: 'acquired', at: from, holdCount: 1, handedOff: false });
    const place = { order, flow, owner, at: from, until };
    this.register.enter(worker, timeline.entered(worker, { ask: 'enter', ...place }), { ask: 'enter', ...place });
    timeline.report(worker, { ...event, event: 'acquired', at: from, holdCount: 2, handedOff: false });
    if (left === undefined) return;
    timeline.report(worker, { ...event, event: 'released', at: left, holdCount: 1 });
    timeline.report(worker, { ...event, event: 'renewed', at: left });
    timeline.report(worker, { ...event, event: 'released', at: left + 1, holdCount: 0 });
    Object.assign(this.section(owner), { left, unlocked: left + 1 });
  }

  section(owner: string): Section {
    return this.register.of(owner)!;
  }
}

const failed = (run: Run): string[] => checks(run).flatMap(({ ok, name }) => (ok ? [] : [name]));

test('a successful run passes every check', () => {
  const run = new HandMadeRun();
  expect(failed(run)).toEqual([]);
  expect(handOffLatencies(run.register)).toEqual({ all: [1], inProcess: 0 });
});

const OVERLAPS = 'overlaps between holds inside their own deadlines';
const LOST = 'lost holds signalled';
const TAKEN_OVER = "the killed process's lock taken over";

test.each<[what: string, check: string, change: (run: HandMadeRun) => void]>([
  ['a process never got in', 'sections entered', ({ timeline }) => timeline.add('w3', 3, ['a'])],
  ['no hold was nested', 'nested holds', ({ timeline }) => timeline.bars.forEach(({ nested }) => nested.splice(0))],
  [
    'two were inside at once',
    OVERLAPS,
    (run) => run.stay({ worker: 'w1', order: 'o1', owner: 'x', wanted: 101, from: 60, until: 9_000, left: 70 }),
  ],
  [
    'a process entered before the lease of the dead one had ended',
    OVERLAPS,
    (run) => run.stay({ worker: 'w1', order: 'o2', owner: 'x', wanted: 900, from: 1_190, until: 9_000, left: 1_195 }),
  ],
  ['an update was overwritten', 'updates of the orders', ({ register }) => register.write('o1', register.read('o1'))],
  ['a loss was not signalled', LOST, (run) => (run.section('late').signals = 0)],
  ['a loss was signalled twice', LOST, (run) => (run.section('late').signals = 2)],
  ['the event reported a loss twice', LOST, (run) => (run.section('late').losses = 2)],
  ['the unlock of a lost hold succeeded', LOST, (run) => delete run.section('late').unlockCode],
  ['a valid hold was reported as lost', LOST, (run) => (run.section('first').signals = 1)],
  ['an unlock failed', LOST, (run) => (run.section('second').unlockCode = 'ERR_LOCK_NOT_OWNER')],
  ['no holder was blocked', LOST, (run) => (run.blocked = undefined)],
  ['no holder was killed', TAKEN_OVER, (run) => (run.killed = undefined)],
  ['the order of the dead stayed locked', TAKEN_OVER, (run) => (run.section('dead').diedAt = 1_300)],
  ['it was taken over too late', TAKEN_OVER, (run) => (run.section('dead').until = 205)],
  [
    'no lease was renewed',
    'renewals by the watchdog',
    ({ timeline }) => timeline.bars.forEach((bar) => bar.renewals.splice(0)),
  ],
  [
    'a wake-up was lost',
    'hand-offs',
    (run) => Object.assign(run.section('second'), { from: 1_100, left: 1_200, unlocked: 1_201 }),
  ],
  ['no process waited', 'hand-offs', (run) => delete run.section('first').unlocked],
  ['a key is left', 'left behind', (run) => (run.keysLeft = 1)],
  ['a process has failed', 'left behind', (run) => run.failures.push('w1: it broke')],
])('if %s, the check "%s" fails', (_, check, change) => {
  const run = new HandMadeRun();
  change(run);
  expect(failed(run)).toContain(check);
});

test('a frame fits the terminal and shows the holders and the waiters', () => {
  const run = new HandMadeRun();
  run.timeline.report('w1', { say: 'wants', order: 'o2', flow: 'a', at: 1_400 });
  for (const columns of [40, 80, 200]) {
    const lines = frame(run.timeline, 2_000, { columns, color: false });
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(columns);
    // In place means: as many lines each time.
    expect(lines).toHaveLength(frame(new HandMadeRun().timeline, 3_999, { columns, color: false }).length);
  }
  const text = frame(run.timeline, 2_000, { columns: 120, color: false }).join('\n');
  expect(text).toMatch(/o2 {2}free +1 waiting w1\/a/);
  expect(text).toMatch(/w2 {2}pid 1 +killed/);
});

test('the picture shows names unchanged, with any characters', () => {
  const timeline = new Timeline(['<order> & "co"']);
  timeline.begin(0, 1_000);
  timeline.add('w1', 1, ['a']);
  expect(drawSvg(timeline, [])).toContain('>&#60;order&#62; &#38; &#34;co&#34;</text>');
});
