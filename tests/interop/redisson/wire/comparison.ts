import { inspect, isDeepStrictEqual } from 'node:util';
import type { Difference, Step } from './scenario.js';
import type { KeyState } from './wire-state.js';

export interface Outcome {
  readonly value: unknown;
  /** When it was known. */
  readonly at: number;
}

/** The effects of one side, under names that do not depend on the side. */
export interface Seen {
  readonly outcome?: unknown;
  readonly woken: readonly unknown[];
  readonly published: readonly string[];
  readonly state: Readonly<Record<string, KeyState>>;
}

/** Uncertainty of the time since the call from which a time to live counts. */
const PASSED_MS = 2_500;
/** No lease: a time that never comes. */
const NEVER = 922337203685477;

/** Whatever differs without being declared, or is declared and does not differ. */
export function compareStep(
  theirs: Seen,
  ours: Seen,
  step: Step,
  version: string,
  toleranceMs: number,
  tookMs: number,
): string[] {
  const declared = (step.differs ?? []).filter((each) => each.in === undefined || each.in.includes(version));
  const found: string[] = [];
  const facet = (name: 'result' | 'woken' | 'published', of: readonly [unknown, unknown], same: boolean): void => {
    const difference = declared.find((each) => each[name] !== undefined);
    const pair = difference?.[name];
    if (pair !== undefined) {
      if (same && difference?.orNone) return;
      if (!isDeepStrictEqual([...of], [...pair])) found.push(`declared ${name} ${show(pair)}, seen ${show(of)}`);
    } else if (!same) found.push(`${name}: Redisson ${show(of[0])}, ours ${show(of[1])}`);
  };
  const close = (a: unknown, b: unknown): boolean => alike(a, b, toleranceMs);
  facet('result', [theirs.outcome, ours.outcome], close(theirs.outcome, ours.outcome));
  facet('woken', [theirs.woken, ours.woken], close(theirs.woken, ours.woken));
  facet('published', [theirs.published, ours.published], isDeepStrictEqual(theirs.published, ours.published));
  found.push(...compareKeys(theirs.state, ours.state, declared, toleranceMs, tookMs));
  return found;
}

function compareKeys(
  theirs: Seen['state'],
  ours: Seen['state'],
  declared: readonly Difference[],
  toleranceMs: number,
  tookMs: number,
): string[] {
  const found: string[] = [];
  const onlyTheirs = declared.flatMap((each) => each.onlyTheirs ?? []);
  const onlyOurs = declared.flatMap((each) => each.onlyOurs ?? []);
  for (const key of [...new Set([...Object.keys(theirs), ...Object.keys(ours)])].sort()) {
    const [a, b] = [theirs[key], ours[key]];
    if (!a || !b) {
      if (!(a ? onlyTheirs : onlyOurs).includes(key)) found.push(`${key}: Redisson ${show(a)}, ours ${show(b)}`);
      continue;
    }
    const later = declared.find((each) => each.scores?.[key])?.scores?.[key];
    const theirValue = a.type === 'zset' ? scoresOf(a.value, later) : a.value;
    const ourValue = a.type === 'zset' ? scoresOf(b.value) : b.value;
    const ownTimes = declared.some((each) => each.ownTimes?.includes(key));
    if (a.type !== b.type || !alike(theirValue, ourValue, ownTimes ? Infinity : toleranceMs)) {
      found.push(`${key}: Redisson ${show(a)}, ours ${show(b)}`);
    }
    const ttl = declared.find((each) => each.ttl?.[key])?.ttl?.[key];
    if (ttl) {
      const late = PASSED_MS + tookMs;
      const fits = [a.pttl, b.pttl].every((left, i) => left <= ttl[i]! + toleranceMs && left >= ttl[i]! - late);
      if (!fits) found.push(`declared times to live ${show(ttl)} of ${key}, seen ${a.pttl} and ${b.pttl}`);
    } else if (
      !ownTimes &&
      a.pttl !== b.pttl &&
      (Math.min(a.pttl, b.pttl) < 0 || Math.abs(a.pttl - b.pttl) > toleranceMs)
    ) {
      found.push(`PTTL of ${key}: Redisson ${a.pttl}, ours ${b.pttl} (within ${Math.round(toleranceMs)})`);
    }
  }
  for (const key of onlyTheirs) if (!theirs[key] || ours[key]) found.push(`declared: only Redisson has ${key}`);
  for (const key of onlyOurs) if (theirs[key] || !ours[key]) found.push(`declared: only we have ${key}`);
  return found;
}

/** By member: equal scores stand in the order of ids, which are drawn at random. */
function scoresOf(value: unknown, laterMs: Readonly<Record<string, number>> = {}): [string, number][] {
  const scores = (value as [string, number][]).map(([member, score]): [string, number] => [
    member,
    score + (laterMs[member] ?? 0),
  ]);
  return scores.sort(([a, first], [b, second]) => (a === b ? first - second : a < b ? -1 : 1));
}

/** Times, also those in text, are alike within the tolerance; everything else has to be the same. */
function alike(a: unknown, b: unknown, toleranceMs: number): boolean {
  if (typeof a === 'number' && typeof b === 'number') {
    if (a === b) return true;
    return Math.min(a, b) >= 200 && Math.max(a, b) !== NEVER && Math.abs(a - b) <= toleranceMs;
  }
  if (typeof a === 'string' && typeof b === 'string') {
    if (a === b) return true;
    return /^1\d{12}$/.test(a) && /^1\d{12}$/.test(b) && Math.abs(Number(a) - Number(b)) <= toleranceMs;
  }
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b;
  const [first, second] = [Object.entries(a).sort(byName), Object.entries(b).sort(byName)];
  return (
    first.length === second.length &&
    first.every(([name, value], i) => second[i]![0] === name && alike(value, second[i]![1], toleranceMs))
  );
}

const byName = ([a]: [string, unknown], [b]: [string, unknown]): number => (a < b ? -1 : 1);
const show = (value: unknown): string => inspect(value, { depth: 5, breakLength: Infinity });
