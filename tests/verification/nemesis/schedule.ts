import { ALL_SCRIPTS, LOCK_SCRIPTS } from '../../support/lua/lock-scripts.js';
import type { Random } from '../../support/random.js';
import type { TopologyName } from './stage.js';

/** Each fault strikes one process, except those whose name begins with `server`. */
export type FaultName =
  | 'cut'
  | 'cut-before'
  | 'cut-after'
  | 'swallow'
  | 'late-command'
  | 'late-reply'
  | 'stall'
  | 'stall-subscriber'
  | 'delay'
  | 'throttle'
  | 'cut-subscriber'
  | 'refuse'
  | 'hang'
  | 'garble'
  | 'answer-error'
  | 'stop-process'
  | 'block-loop'
  | 'sleep'
  | 'set-clock'
  | 'kill-process'
  | 'partition'
  | 'server-stop'
  | 'server-kill'
  | 'server-failover'
  | 'server-slot-move'
  | 'server-restart'
  | 'server-pause-all'
  | 'server-pause-write'
  | 'server-script-flush'
  | 'server-oom'
  | 'server-kill-pubsub'
  | 'server-readonly'
  | 'server-delete-key'
  | 'server-publish';

/** One fault of a schedule. Not every kind uses every number. */
export interface ScheduledFault {
  readonly kind: FaultName;
  /** ms from the start of the round. */
  readonly at: number;
  readonly process: number;
  /** How long it lasts. */
  readonly ms: number;
  /** How many commands in a row it strikes. */
  readonly times: number;
  /** Only commands of this script; absent: all scripts. */
  readonly script: string | undefined;
  /** For a choice that the kind has to make; in [0, 1). */
  readonly choice: number;
}

interface Terms {
  readonly weight: number;
  readonly leastMs: number;
  readonly mostMs: number;
}

/** Long enough for leases to end and for not-afters to pass, short enough to leave most of the time to the locks. */
const TERMS: Readonly<Record<FaultName, Terms>> = {
  cut: { weight: 3, leastMs: 0, mostMs: 0 },
  'cut-before': { weight: 5, leastMs: 2_000, mostMs: 4_000 },
  'cut-after': { weight: 7, leastMs: 2_000, mostMs: 4_000 },
  swallow: { weight: 5, leastMs: 2_000, mostMs: 4_000 },
  'late-command': { weight: 8, leastMs: 50, mostMs: 10_000 },
  'late-reply': { weight: 4, leastMs: 50, mostMs: 3_000 },
  stall: { weight: 3, leastMs: 100, mostMs: 4_000 },
  'stall-subscriber': { weight: 2, leastMs: 200, mostMs: 9_000 },
  delay: { weight: 3, leastMs: 300, mostMs: 3_000 },
  throttle: { weight: 2, leastMs: 300, mostMs: 2_000 },
  'cut-subscriber': { weight: 3, leastMs: 0, mostMs: 100 },
  refuse: { weight: 2, leastMs: 50, mostMs: 2_000 },
  hang: { weight: 2, leastMs: 50, mostMs: 2_500 },
  garble: { weight: 2, leastMs: 1_000, mostMs: 2_000 },
  'answer-error': { weight: 3, leastMs: 500, mostMs: 2_000 },
  'stop-process': { weight: 3, leastMs: 100, mostMs: 4_000 },
  'block-loop': { weight: 3, leastMs: 50, mostMs: 2_500 },
  sleep: { weight: 3, leastMs: 100, mostMs: 4_000 },
  'set-clock': { weight: 3, leastMs: 60, mostMs: 3_600_000 },
  'kill-process': { weight: 1, leastMs: 0, mostMs: 0 },
  partition: { weight: 4, leastMs: 100, mostMs: 4_000 },
  'server-stop': { weight: 2, leastMs: 50, mostMs: 3_000 },
  'server-restart': { weight: 1, leastMs: 0, mostMs: 0 },
  'server-kill': { weight: 3, leastMs: 0, mostMs: 0 },
  'server-failover': { weight: 4, leastMs: 0, mostMs: 0 },
  'server-slot-move': { weight: 10, leastMs: 50, mostMs: 8_000 }, // longer than a lease that cannot be renewed
  'server-pause-all': { weight: 2, leastMs: 50, mostMs: 2_500 },
  'server-pause-write': { weight: 2, leastMs: 50, mostMs: 2_500 },
  'server-script-flush': { weight: 2, leastMs: 0, mostMs: 0 },
  'server-oom': { weight: 1, leastMs: 50, mostMs: 1_000 },
  'server-kill-pubsub': { weight: 2, leastMs: 0, mostMs: 0 },
  'server-readonly': { weight: 1, leastMs: 50, mostMs: 1_500 },
  'server-delete-key': { weight: 1, leastMs: 0, mostMs: 0 },
  'server-publish': { weight: 5, leastMs: 0, mostMs: 0 },
};

/** With local hand-overs, a process may not learn at once that its lock has been lost. */
const HOT_TERMS: Partial<Readonly<Record<FaultName, Terms>>> = {
  'server-delete-key': { weight: 20, leastMs: 0, mostMs: 0 },
};

/** A round consists of acts: a storm of faults, then a lull, then an idle phase with checks. */
export const ACT_MS = 20_000;
const STORM_MS = 11_000;
/** After the begin of a lull all subscriptions are cut: no other fault keeps a waiter from a release message. */
const LULL_CUT_MS = 2_500;

/** Time for the effects of a fault after its end: new connections, and held commands that run now. */
const AFTERMATH_MS = 3_000;
const AFTERMATHS_MS: Partial<Record<FaultName, number>> = {
  cut: 1_500,
  'cut-subscriber': 1_000,
  'server-kill-pubsub': 1_000,
  'server-script-flush': 1_000,
};
export const aftermathMs = (kind: FaultName): number => AFTERMATHS_MS[kind] ?? AFTERMATH_MS;

/** Actions that are allowed at any time and excuse nothing. */
export const isHarmless = (kind: FaultName): boolean => kind === 'server-publish';

/** Those that make no sense with this topology. */
const NOT_WITH: Readonly<Record<TopologyName, readonly FaultName[]>> = {
  single: ['server-kill', 'server-failover', 'server-slot-move'],
  cluster: ['server-restart', 'server-readonly'],
  sentinel: ['server-restart', 'server-readonly', 'server-slot-move'],
};
/** Faults that may lose an acknowledged write, also a confirmed one if the replicas are told to forget it. */
const LOSING: readonly FaultName[] = ['server-stop', 'server-kill', 'server-delete-key'];

/** The scripts of the plain lock run most often, and the scripts of all kinds run at times. */
const SCRIPTS = [...LOCK_SCRIPTS.keys()].map((name) => `lock/${name}`);
const EVERY_SCRIPT = [...ALL_SCRIPTS.keys()];
const MIN_GAP_MS = 50;
const MAX_GAP_MS = 1_200;

/** The faults of one round, in the order in which they begin. The same numbers give the same schedule. */
export function drawSchedule(
  random: Random,
  {
    ms: roundMs,
    processes,
    topology,
    planned,
    hot,
  }: { ms: number; processes: number; topology: TopologyName; planned: boolean; hot: boolean },
): ScheduledFault[] {
  const without = [...NOT_WITH[topology], ...(planned ? LOSING : [])];
  const kinds = (Object.entries({ ...TERMS, ...(hot && HOT_TERMS) }) as [FaultName, Terms][]).filter(
    ([kind]) => !without.includes(kind),
  );
  const weights = kinds.reduce((sum, [, { weight }]) => sum + weight, 0);
  const faults: ScheduledFault[] = [];
  for (let at = 500; at < roundMs; at += MIN_GAP_MS + random.below(MAX_GAP_MS - MIN_GAP_MS)) {
    const act = Math.floor(at / ACT_MS) * ACT_MS;
    const stormEnds = act + STORM_MS;
    if (at >= stormEnds) {
      faults.push(lullCut(stormEnds + LULL_CUT_MS));
      at = act + ACT_MS;
      continue;
    }
    let left = random.below(weights);
    const [kind, terms] = kinds.find(([, { weight }]) => (left -= weight) < 0)!;
    // More of the short ones: the square of an even draw.
    const ms = Math.round(terms.leastMs + (terms.mostMs - terms.leastMs) * random.fraction() ** 2);
    faults.push({
      kind,
      at,
      process: random.below(processes),
      // How far a clock is set is no time.
      ms: kind === 'set-clock' ? ms : Math.min(ms, stormEnds - at),
      times: 1 + random.below(3),
      script: [undefined, random.pick(SCRIPTS), random.pick(EVERY_SCRIPT)][random.below(3)],
      choice: random.fraction(),
    });
  }
  return faults;
}

const lullCut = (at: number): ScheduledFault => ({
  kind: 'server-kill-pubsub',
  at,
  process: 0,
  ms: 0,
  times: 1,
  script: undefined,
  choice: 0,
});

export function described({ kind, at, process, ms, times, script }: ScheduledFault): string {
  const whom = kind.startsWith('server') ? '' : ` process ${process}`;
  return `${String(at).padStart(6)} ms  ${kind}${whom}, ${ms} ms, ${times} times, ${script ?? 'any script'}`;
}
