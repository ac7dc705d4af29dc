import { quantile } from '../../bench/statistics.js';
import type { Register, Section } from './register.js';
import { seconds, type Timeline } from './timeline.js';

export interface Run {
  readonly register: Register;
  readonly timeline: Timeline;
  /** Owners of the holds whose process was killed, and was blocked. */
  readonly killed: string | undefined;
  readonly blocked: string | undefined;
  /** What has gone wrong in a process besides. */
  readonly failures: readonly string[];
  readonly keysLeft: number;
}

export interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly found: string;
}

/** A wake-up that got lost would cost the rest of a lease, which is seconds. */
const LOST_WAKE_UP_MS = 1_000;

export function checks(run: Run): Check[] {
  return [
    sectionsEntered(run),
    nestedHolds(run),
    overlaps(run),
    updates(run),
    lostHolds(run),
    takeOver(run),
    renewals(run),
    handOffs(run),
    leftovers(run),
  ];
}

function sectionsEntered({ register: { sections }, timeline }: Run): Check {
  const workers = [...timeline.workers.keys()];
  const ok = workers.every((name) => sections.some(({ worker }) => worker === name));
  const gaveUp = [...timeline.workers.values()].reduce((sum, worker) => sum + worker.gaveUp, 0);
  const found = `${sections.length} by ${workers.length} processes (${gaveUp} calls ran out of time)`;
  return { name: 'sections entered', ok, found };
}

function nestedHolds({ timeline: { bars } }: Run): Check {
  const nested = bars.reduce((sum, bar) => sum + bar.nested.length, 0);
  return { name: 'nested holds', ok: nested > 0, found: `${nested}, hold count 2` };
}

function overlaps({ register }: Run): Check {
  const [one, ...more] = register.overlaps();
  const name = 'overlaps between holds inside their own deadlines';
  if (!one) return { name, ok: true, found: '0' };
  const { first, second } = one;
  const found = `${more.length + 1}, the first: ${first.worker} and ${second.worker} in ${first.order}`;
  return { name, ok: false, found };
}

function updates({ register }: Run): Check {
  const { written, kept } = register.updates();
  const found = `${kept} of ${written} kept (read, think, write back)`;
  return { name: 'updates of the orders', ok: written > 0 && kept === written, found };
}

function lostHolds({ register: { sections }, blocked }: Run): Check {
  const lost = sections.filter(({ left, until }) => left !== undefined && left > until);
  const told = ({ signals, losses, unlockCode }: Section): string => `${signals}/${losses}/${unlockCode ?? 'unlocked'}`;
  const once = '1/1/ERR_LOCK_LOST';
  const signalled = lost.filter((section) => told(section) === once);
  const others = sections.filter((section) => !lost.includes(section) && section.diedAt === undefined);
  const wrong = others.filter((section) => told(section) !== '0/0/unlocked');
  const ok = lost.some(({ owner }) => owner === blocked) && signalled.length === lost.length && wrong.length === 0;
  const rest = wrong.length > 0 ? `; ${wrong.length} more before their deadlines` : '';
  return { name: 'lost holds signalled', ok, found: `${signalled.length} of ${lost.length}, exactly once${rest}` };
}

function takeOver({ register, killed }: Run): Check {
  const name = "the killed process's lock taken over";
  const section = register.sections.find(({ owner }) => owner === killed);
  const { diedAt } = section ?? {};
  if (!section || diedAt === undefined) return { name, ok: false, found: 'nobody was killed inside' };
  const next = register.sectionsOf(section.order).find(({ from }) => from > diedAt);
  if (!next) return { name, ok: false, found: `nobody has entered ${section.order} since` };
  const late = next.from - section.until;
  const found = `by ${next.worker} ${seconds(next.from - diedAt)} s after the kill, ${Math.round(late)} ms after its lease`;
  return { name, ok: next.worker !== section.worker && late >= 0 && late < LOST_WAKE_UP_MS, found };
}

function renewals({ timeline }: Run): Check {
  const count = timeline.bars.reduce((sum, bar) => sum + bar.renewals.length, 0);
  return { name: 'renewals by the watchdog', ok: count > 0, found: String(count) };
}

/** From the call of `unlock()` to the entry of one that was waiting by then. */
export function handOffLatencies(register: Register): { all: number[]; inProcess: number } {
  const all: number[] = [];
  let inProcess = 0;
  for (const order of register.orders) {
    const sections = register.sectionsOf(order);
    for (const [at, next] of sections.entries()) {
      const before = sections[at - 1];
      if (before?.unlocked === undefined || before.unlockCode !== undefined || next.wanted > before.unlocked) continue;
      all.push(next.from - before.unlocked);
      if (next.worker === before.worker) inProcess += 1;
    }
  }
  return { all, inProcess };
}

function handOffs({ register }: Run): Check {
  const { all, inProcess } = handOffLatencies(register);
  if (all.length === 0) return { name: 'hand-offs', ok: false, found: 'none' };
  const [p50, p99] = [quantile(all, 0.5), quantile(all, 0.99)];
  const found = `${all.length}, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms (${inProcess} inside a process)`;
  return { name: 'hand-offs', ok: Math.max(...all) < LOST_WAKE_UP_MS, found };
}

function leftovers({ failures, keysLeft }: Run): Check {
  const ok = failures.length === 0 && keysLeft === 0;
  return { name: 'left behind', ok, found: [`${keysLeft} keys`, ...failures].join('; ') };
}
