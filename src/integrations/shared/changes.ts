import type { ListedOwner, ListEntry } from '../../index.js';

/** What changed between two looks at one name. */
export type Change =
  | { readonly what: 'handed over'; readonly from: ListedOwner; readonly to: ListedOwner }
  | { readonly what: 'acquired'; readonly owner: ListedOwner }
  | { readonly what: 'released' | 'expired'; readonly owner: ListedOwner }
  | { readonly what: 'hold count'; readonly owner: ListedOwner; readonly from: number }
  | { readonly what: 'waiters'; readonly from: number | undefined; readonly to: number | undefined }
  | { readonly what: 'value'; readonly from: string | undefined; readonly to: string | undefined };

/**
 * Compares two looks at one name. Redis keeps no history, so a section that began and ended between the looks is not
 * seen. An owner whose lease would have lasted beyond the second look released the lock, or somebody freed it.
 */
export function changesBetween(before: ListEntry, after: ListEntry, elapsedMs: number): Change[] {
  const changes: Change[] = [];
  // One owner may have both halves of a read-write lock.
  const halfOf = ({ owner, mode }: ListedOwner): string => `${mode} ${owner}`;
  const had = new Map(before.owners.map((owner) => [halfOf(owner), owner]));
  const has = new Map(after.owners.map((owner) => [halfOf(owner), owner]));
  const gone = before.owners.filter((owner) => !has.has(halfOf(owner)));
  const come = after.owners.filter((owner) => !had.has(halfOf(owner)));
  const expired = before.remaining >= 0 && before.remaining <= elapsedMs;
  const [from, ...othersGone] = gone;
  const [to, ...othersCome] = come;
  const one = othersGone.length === 0 && othersCome.length === 0;
  if (from !== undefined && to !== undefined && one && from.mode !== 'read' && to.mode !== 'read' && !expired) {
    changes.push({ what: 'handed over', from, to });
  } else {
    for (const owner of gone) changes.push({ what: expired ? 'expired' : 'released', owner });
    for (const owner of come) changes.push({ what: 'acquired', owner });
  }
  for (const owner of after.owners) {
    const earlier = had.get(halfOf(owner))?.holdCount;
    if (earlier !== undefined && earlier !== owner.holdCount) {
      changes.push({ what: 'hold count', owner, from: earlier });
    }
  }
  if (before.waiters !== after.waiters) changes.push({ what: 'waiters', from: before.waiters, to: after.waiters });
  if (before.value !== after.value) changes.push({ what: 'value', from: before.value, to: after.value });
  return changes;
}
