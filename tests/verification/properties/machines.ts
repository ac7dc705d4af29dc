import fc from 'fast-check';
import { withTimeOf } from './fake-time.js';
import { CALM, type Weather } from './fake-network.js';
import { World, type Step } from './world.js';

/** A part of the mechanisms, with the steps that stress it. */
export interface Machine {
  readonly name: string;
  readonly locks: number;
  readonly step: fc.Arbitrary<Step>;
}

const percent = fc.constantFrom(0, 0, 0, 20, 60, 100);
const storm: fc.Arbitrary<Weather> = fc.record({
  delay: fc.constantFrom(1, 5, 40, 120),
  loseRequest: percent,
  loseReply: percent,
  late: percent,
  refuse: percent,
});

const index = fc.nat(9);
const wait = fc.constantFrom(0, 30, 400, 3_000, Infinity);
const lease = fc.constantFrom(undefined, undefined, 60, 250, 900, 20_000);
const ms = fc.oneof(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 30, max: 300 }), fc.constantFrom(700, 1_500));
const of = <S extends Step>(step: fc.Arbitrary<S>, weight: number): fc.WeightedArbitrary<Step> => ({
  arbitrary: step,
  weight,
});

const acquires = fc.record({ do: fc.constant('acquire' as const), client: index, lock: index, wait, lease });
const nests = fc.record({ do: fc.constant('nest' as const), hold: index, wait, lease });
const releases = fc.record({ do: fc.constant('release' as const), hold: index });
const extensions = fc.record({
  do: fc.constant('extend' as const),
  hold: index,
  lease: fc.constantFrom(50, 400, 5_000),
});
const aborts = fc.record({ do: fc.constant('abort' as const), call: index });
const forces = fc.record({ do: fc.constant('force' as const), client: index, lock: index });
const robs = fc.record({ do: fc.constant('rob' as const), lock: index });
const strangers = fc.record({ do: fc.constant('stranger' as const), lock: index, lease: fc.constantFrom(40, 500) });
const passes = fc.record({ do: fc.constant('pass' as const), ms });
const blocks = fc.record({ do: fc.constant('block' as const), ms });
const jumps = fc.record({ do: fc.constant('jump' as const), ms: fc.constantFrom(60, 300, 3_600_000) });
const storms = fc.record({ do: fc.constant('weather' as const), client: index, weather: storm });
const calms = fc.record({ do: fc.constant('weather' as const), client: index, weather: fc.constant(CALM) });
const absences = fc.record({ do: fc.constant('away' as const), client: index, ms });
const cuts = fc.record({ do: fc.constant('cut' as const), client: index, ms });
const flushes = fc.record({ do: fc.constant('flush' as const) });

const weather = [of(storms, 3), of(calms, 1), of(absences, 1), of(flushes, 1)];

export const MACHINES: readonly Machine[] = [
  {
    name: 'tenures: nested holds, extended and released in any order',
    locks: 1,
    step: fc.oneof(
      of(acquires, 3),
      of(nests, 6),
      of(releases, 5),
      of(extensions, 2),
      of(passes, 8),
      of(blocks, 1),
      of(robs, 1),
      ...weather,
    ),
  },
  {
    name: 'entries: waiters that come, leave and wake one another',
    locks: 1,
    step: fc.oneof(
      of(acquires, 8),
      of(releases, 5),
      of(aborts, 3),
      of(strangers, 2),
      of(forces, 1),
      of(cuts, 2),
      of(passes, 8),
      ...weather,
    ),
  },
  {
    name: 'watchdog: many locks, renewed, blocked and robbed',
    locks: 4,
    step: fc.oneof(
      of(acquires, 6),
      of(nests, 2),
      of(releases, 4),
      of(robs, 1),
      of(forces, 1),
      of(blocks, 3),
      of(passes, 10),
      ...weather,
    ),
  },
  {
    name: 'clocks: jumps and sleeps between all the rest',
    locks: 2,
    step: fc.oneof(
      of(acquires, 5),
      of(nests, 3),
      of(releases, 4),
      of(extensions, 2),
      of(jumps, 4),
      of(blocks, 2),
      of(passes, 8),
      ...weather,
    ),
  },
];

/** Runs this many random schedules. The first failing one is reduced and reported with its seed. */
export async function playMachine({ step, locks }: Machine, schedules: number, seed: number): Promise<number> {
  let granted = 0;
  const schedule = fc.record({ luck: fc.nat(), steps: fc.array(step, { minLength: 3, maxLength: 25 }) });
  await fc.assert(
    fc.asyncProperty(schedule, async ({ luck, steps }) => {
      const world = new World(luck, locks);
      const restore = withTimeOf(world.clock);
      try {
        await world.play(steps);
      } finally {
        restore();
        granted += world.granted;
      }
    }),
    { numRuns: schedules, seed },
  );
  return granted;
}
