import { writeFileSync } from 'node:fs';
import type { HistoryEvent } from '../../support/history/history-events.js';
import { Random } from '../../support/random.js';
import { isExclusive, KINDS, type Kind } from './kinds.js';
import { playRound, type RoundOptions, type RoundResult } from './round.js';
import { ACT_MS, described, drawSchedule, type ScheduledFault } from './schedule.js';
import type { TopologyName } from './stage.js';

export interface NemesisOptions {
  readonly minutes: number;
  readonly seed: string;
  readonly say: (line: string) => void;
  /** How long a violation is looked into, by playing its round again with ever fewer faults. */
  readonly shrinkMinutes?: number;
  readonly roundMs?: number;
  readonly topology?: TopologyName;
  /** Default: all kinds; with several servers the followed kinds, because a failover deletes some. */
  readonly kinds?: readonly Kind[];
  /** Failovers are planned and replicas confirm every grant: then no acknowledged write may be lost. */
  readonly planned?: boolean;
  /** All clients have local hand-overs, and there are fewer names and more lost locks. */
  readonly hot?: boolean;
  /** A file for all events of the round in which something went wrong, one a line. */
  readonly historyFile?: string | undefined;
}

export interface NemesisReport {
  readonly seed: string;
  readonly rounds: number;
  readonly sections: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly refused: Readonly<Record<string, number>>;
  readonly notReleased: Readonly<Record<string, number>>;
  /** Granted, by kind; a multi-lock counts for each of its members. */
  readonly granted: Readonly<Record<string, number>>;
  readonly lossesSignalled: number;
  readonly unknownOutcomes: number;
  /** Writes that were acknowledged and that the server that took over never had, seen at the servers. */
  readonly lostWrites: number;
  /** Sections that followed another one without a request, and those that began after Redis had lost their owner. */
  readonly followed: number;
  readonly followedAfterLoss: number;
  readonly violations: number;
  /** The reason and the time of the end of the run. */
  readonly found?: string;
}

const PROCESSES = 4;
const FLOWS = 8;
const NAMES = 16;
/** Fewer, so that the calls of a process follow one another. */
const HOT_NAMES = 6;
const HOT_FLOWS = 12;
const HOT_KINDS: readonly Kind[] = ['lock', 'readwrite', 'multi', 'nonreentrant'];
const ROUND_MS = 40_000;
const SHOWN = 20;

/** Rounds of work under faults until the time is up or a violation has been found. */
export async function runNemesis(options: NemesisOptions): Promise<NemesisReport> {
  const { minutes, seed, say, shrinkMinutes = 6, roundMs = ROUND_MS, topology = 'single' } = options;
  const { planned = false, hot = false } = options;
  const { kinds = kindsFor(topology).filter((kind) => !hot || HOT_KINDS.includes(kind)) } = options;
  if (topology !== 'single' && kinds.includes('red')) throw new Error('a RedLock wants servers that are alone');
  if (kinds.includes('multi') && !kinds.some((kind) => isExclusive(`${kind}:`)))
    throw new Error('a multi-lock wants members: ' + KINDS.filter((kind) => isExclusive(`${kind}:`)).join(', '));
  const begun = performance.now();
  const end = begun + minutes * 60_000;
  const total = new Totals(seed);
  const [flows, names] = hot ? [HOT_FLOWS, HOT_NAMES] : [FLOWS, NAMES];
  say(
    `nemesis: ${topology}${planned ? ', planned' : ''}${hot ? ', hot' : ''}, seed ${seed}, ${minutes} min, ${PROCESSES} processes x ${flows} flows x ${names} names: ${kinds.join(', ')}`,
  );
  for (let round = 1; performance.now() < end; round++) {
    const roundSeed = `${seed}/${round}`;
    const shape = { ms: roundMs, processes: PROCESSES, topology, planned, hot };
    const schedule = drawSchedule(new Random('schedule', roundSeed), shape);
    const terms = { ...shape, seed: roundSeed, schedule, flows, names, kinds };
    const started = performance.now();
    const result = await playRound(terms);
    total.add(result);
    const seconds = ((performance.now() - started) / 1000).toFixed(0);
    say(
      `round ${round} (${seconds} s): ${result.sections} sections, ${sumOf(result.faults)} faults, ` +
        `${result.lossesSignalled} losses signalled, ${result.unknownOutcomes} unknown outcomes, ` +
        `${result.lostWrites} lost writes, ` +
        `${result.followed} followed without a request, ${result.followedAfterLoss} of them after a loss in Redis, ` +
        `${result.violations.length} violations`,
    );
    if (result.violations.length > 0) {
      total.found = `${[...new Set(result.violations.map(({ kind }) => kind))].join(', ')} with seed ${seed} after ${((performance.now() - begun) / 1_000).toFixed(0)} s`;
      tell(say, terms, result);
      if (options.historyFile !== undefined) writeHistory(options.historyFile, result.history);
      await shrink(terms, say, shrinkMinutes * 60_000);
      break;
    }
  }
  return total;
}

function kindsFor(topology: TopologyName): readonly Kind[] {
  if (topology === 'single') return KINDS;
  // Only the slots of a cluster move, and that no kind may mind. A RedLock wants servers that are alone.
  if (topology === 'cluster') return KINDS.filter((kind) => kind !== 'red');
  return KINDS.filter((kind) => isExclusive(`${kind}:`) || kind === 'multi');
}

class Totals implements NemesisReport {
  rounds = 0;
  sections = 0;
  readonly faults: Record<string, number> = {};
  readonly refused: Record<string, number> = {};
  readonly notReleased: Record<string, number> = {};
  readonly granted: Record<string, number> = {};
  lossesSignalled = 0;
  unknownOutcomes = 0;
  lostWrites = 0;
  followed = 0;
  followedAfterLoss = 0;
  violations = 0;
  found?: string;

  constructor(readonly seed: string) {}

  add(result: RoundResult): void {
    this.rounds += 1;
    this.sections += result.sections;
    this.lossesSignalled += result.lossesSignalled;
    this.unknownOutcomes += result.unknownOutcomes;
    this.lostWrites += result.lostWrites;
    this.followed += result.followed;
    this.followedAfterLoss += result.followedAfterLoss;
    this.violations += result.violations.length;
    for (const kind of ['faults', 'refused', 'notReleased', 'granted'] as const)
      for (const [name, count] of result[kind]) this[kind][name] = (this[kind][name] ?? 0) + count;
  }
}

function writeHistory(file: string, history: readonly HistoryEvent[]): void {
  const lines = [...history].sort((a, b) => a.at - b.at).map((event) => JSON.stringify(event));
  writeFileSync(file, `${lines.join('\n')}\n`);
}

function tell(
  say: NemesisOptions['say'],
  { seed, schedule }: RoundOptions,
  { violations, history }: RoundResult,
): void {
  for (const { kind, message, events = [] } of violations.slice(0, SHOWN)) {
    say(`VIOLATION ${kind}: ${message}`);
    for (const event of events) say(`    ${JSON.stringify(event)}`);
    say('  among all that its owners did:');
    for (const event of storyOf(events, history)) say(`    ${JSON.stringify(event)}`);
  }
  if (violations.length > SHOWN) say(`... and ${violations.length - SHOWN} more`);
  say(`of the round with seed ${seed}, under this schedule:`);
  for (const fault of schedule) say(`  ${described(fault)}`);
}

/** The history of the owners of these events, and of their locks at the server. */
function storyOf(events: readonly HistoryEvent[], history: readonly HistoryEvent[]): HistoryEvent[] {
  const owners = new Set(events.flatMap((event) => ('owner' in event ? [event.owner] : [])));
  const granted = history.filter((event) => event.type === 'acquire-ok' && owners.has(event.owner));
  const names = new Set(granted.flatMap((event) => (event.type === 'acquire-ok' ? [event.hold, event.call] : [])));
  const concerns = (event: HistoryEvent): boolean =>
    ('owner' in event && owners.has(event.owner)) ||
    ('hold' in event && names.has(event.hold)) ||
    ('call' in event && names.has(event.call));
  return history.filter(concerns).sort((a, b) => a.at - b.at);
}

/** Leaves out ever smaller parts of the schedule for as long as the round still goes wrong without them. */
async function shrink(terms: RoundOptions, say: NemesisOptions['say'], limitMs: number): Promise<void> {
  const end = performance.now() + limitMs;
  let smallest = terms.schedule;
  let parts = 2;
  while (smallest.length > 1 && parts <= smallest.length && performance.now() < end) {
    const size = Math.ceil(smallest.length / parts);
    let shrunk = false;
    for (let from = 0; from < smallest.length && performance.now() < end; from += size) {
      const without = [...smallest.slice(0, from), ...smallest.slice(from + size)];
      const ms = Math.ceil((lastOf(without) + 3_000) / ACT_MS) * ACT_MS;
      const { violations } = await playRound({ ...terms, ms, schedule: without });
      say(`shrinking: ${without.length} faults, ${violations.length} violations`);
      if (violations.length === 0) continue;
      smallest = without;
      parts = Math.max(2, parts - 1);
      shrunk = true;
      break;
    }
    if (!shrunk) parts *= 2;
  }
  say(`shrunk from ${terms.schedule.length} to ${smallest.length} faults (seed ${terms.seed}):`);
  for (const fault of smallest) say(`  ${described(fault)}`);
}

const lastOf = (schedule: readonly ScheduledFault[]): number => Math.max(0, ...schedule.map(({ at, ms }) => at + ms));
const sumOf = (counts: ReadonlyMap<string, number>): number =>
  [...counts.values()].reduce((sum, count) => sum + count, 0);
