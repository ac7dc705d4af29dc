import type { ListEntry } from '../index.js';
import { leaseText, ownerText } from './words.js';

/** What changed between two looks at one name. */
export interface Change {
  readonly what: 'acquired' | 'handed over' | 'released' | 'expired' | 'hold count' | 'waiters' | 'value';
  readonly text: string;
}

/**
 * Compares two looks at one name. Redis keeps no history, so a section that began and ended between the looks is not
 * seen. An owner whose lease would have lasted beyond the second look released the lock, or somebody freed it.
 */
export function changesBetween(before: ListEntry, after: ListEntry, elapsedMs: number): Change[] {
  const changes: Change[] = [];
  const had = new Map(before.owners.map((owner) => [owner.owner, owner]));
  const has = new Map(after.owners.map((owner) => [owner.owner, owner]));
  const gone = before.owners.filter(({ owner }) => !has.has(owner));
  const come = after.owners.filter(({ owner }) => !had.has(owner));
  const expired = before.remaining >= 0 && before.remaining <= elapsedMs;
  const [from, ...othersGone] = gone;
  const [to, ...othersCome] = come;
  const one = othersGone.length === 0 && othersCome.length === 0;
  if (from !== undefined && to !== undefined && one && from.mode !== 'read' && to.mode !== 'read' && !expired) {
    changes.push({ what: 'handed over', text: `${ownerText(from)} -> ${ownerText(to)}` });
  } else {
    for (const owner of gone) changes.push({ what: expired ? 'expired' : 'released', text: ownerText(owner) });
    for (const owner of come) {
      changes.push({ what: 'acquired', text: `${ownerText(owner)}, lease ${leaseText(after.remaining)}` });
    }
  }
  for (const owner of after.owners) {
    const earlier = had.get(owner.owner)?.holdCount;
    if (earlier !== undefined && earlier !== owner.holdCount) {
      changes.push({ what: 'hold count', text: `${earlier} -> ${owner.holdCount} of ${ownerText(owner)}` });
    }
  }
  if (before.waiters !== after.waiters) {
    changes.push({ what: 'waiters', text: `${before.waiters ?? '?'} -> ${after.waiters ?? '?'}` });
  }
  if (before.value !== after.value) {
    changes.push({ what: 'value', text: `${before.value ?? 'none'} -> ${after.value ?? 'none'}` });
  }
  return changes;
}
