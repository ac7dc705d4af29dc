/* The member locks of a multi-lock or RedLock. */
import type { CallSite } from '../ownership/call-site.js';
import type { LockContext } from '../ownership/lock-context.js';
import { within } from '../clock.js';
import { InvalidArgumentError } from '../errors.js';
import { onAbort } from '../waiting/limits/wait-limit.js';
import { quoted } from '../visible.js';
import { GroupMultiLock } from './group/group-lock.js';
import { innermostHold } from '../holding/innermost-hold.js';
import { SingleHold } from '../holding/single-hold.js';
import { SingleLock } from '../locks/single-lock.js';

export type Member = SingleLock;
export type Members = readonly [Member, ...Member[]];

const kindOf = ({ protocol }: Member): string =>
  `${protocol.kind} ${protocol.reentrant} ${protocol.side ?? ''} ${protocol.lockedValues?.line ?? ''}`;

export const identityOf = (member: Member): string =>
  `${member.runtime.clientId} ${member.protocol.key} ${kindOf(member)}`;

type ServerOf = (member: Member) => string;
const byConfiguration: ServerOf = ({ runtime: { server } }) => server.name;
/** By what every process reads from the server, if it is known. */
export const byIdentity: ServerOf = ({ runtime: { server } }) => server.known ?? server.name;

/**
 * Sorts the members into the order in which every process locks them: by key, and then by server. The kind is left out,
 * because another process may use another kind of lock with the same name. Drops duplicates. Refuses two locks that
 * would wait for each other.
 *
 * Group locks of one group cannot be sorted like that: the values of one lock may overlap with the values of two locks
 * in another process. So a multi-lock merges them and locks all values of a group with one script.
 */
export function orderedMembers(
  given: Members,
  groups: 'together' | 'refused',
  serverOf: ServerOf = byConfiguration,
): Members {
  const orderOf = (member: Member): string => JSON.stringify([member.protocol.key, serverOf(member)]);
  const members = new Map(given.map((member) => [identityOf(member), member]));
  const byOrder = new Map<string, Member[]>();
  for (const member of members.values()) {
    const others = byOrder.get(orderOf(member)) ?? [];
    for (const other of others) checkBeside(other, member, groups);
    byOrder.set(orderOf(member), [...others, member]);
  }
  const orders = [...byOrder.keys()].sort();
  return orders.map((order) => together(byOrder.get(order) as unknown as Members)) as unknown as Members;
}

/** The members whose name another member has, too, at what the configuration says is another server. */
export const namesakesAmong = (members: Members): readonly Member[] =>
  members.filter((one) => members.some((other) => other !== one && other.protocol.key === one.protocol.key));

/**
 * Resolves when the servers of the members have told who they are: at the latest after the time of an attempt, after
 * `ms`, or when the signal aborts.
 */
export async function whenIdentified(
  members: readonly Member[],
  { signal, ms = Infinity }: { readonly signal: AbortSignal | undefined; readonly ms?: number },
): Promise<void> {
  const unread = members.filter(({ runtime }) => runtime.server.isUnread);
  const [first] = unread;
  if (first === undefined || signal?.aborted === true) return;
  const longest = Math.max(...unread.map(({ runtime }) => runtime.options.attemptMs));
  let unwatch: (() => void) | undefined;
  const aborted = new Promise<void>((end) => (unwatch = signal && onAbort(signal, end)));
  const looks = Promise.all(unread.map(({ runtime }) => runtime.server.look()));
  await within(first.runtime.clock.clock, Math.min(longest, ms), Promise.race([looks, aborted]));
  unwatch?.();
}

export function checkMembers(given: readonly unknown[]): Members {
  if (given.length === 0) throw new InvalidArgumentError('locks', 'at least one lock', 'none');
  for (const member of given) {
    if (member instanceof SingleLock) continue;
    throw new InvalidArgumentError('locks', 'locks that each have one name (a multi-lock has several)', member);
  }
  return given as Members;
}

/** Refuses `b` if both locks have the same key at the same server and must not be members of one lock. */
function checkBeside(a: Member, b: Member, groups: 'together' | 'refused'): void {
  const { lockedValues } = a.protocol;
  if (
    lockedValues === undefined ||
    b.protocol.lockedValues === undefined ||
    lockedValues.overlaps(b.protocol.lockedValues)
  ) {
    throw new InvalidArgumentError(
      'locks',
      'locks that do not exclude one another',
      b.name,
      a.runtime.server.name === b.runtime.server.name
        ? `locks must not exclude one another: ${quoted(a.name)} is given twice; pass each name once`
        : `locks must not exclude one another: ${quoted(a.name)} is given twice, because ` +
            `${a.runtime.server.name} and ${b.runtime.server.name} are one server; pass each server once`,
    );
  }
  if (groups === 'refused' || a.runtime !== b.runtime) {
    throw new InvalidArgumentError(
      'locks',
      `one lock for each group and server; use one getMultiLock(${quoted(a.name)}, values) with all the values`,
      b.name,
    );
  }
}

function together([first, ...others]: Members): Member {
  const groups = others.filter((other) => other instanceof GroupMultiLock);
  return first instanceof GroupMultiLock && groups.length > 0 ? first.with(groups) : first;
}

/**
 * The context of a lock over several locks: the one in its own options, or else the one that all members name.
 * Members with a different context are refused, because the lock acts for one owner.
 */
export function contextOf(members: Members, own: LockContext | undefined): LockContext | undefined {
  const context = own ?? members[0].context;
  for (const { name, context: named } of members) {
    if (named === context || (own !== undefined && named === undefined)) continue;
    throw new InvalidArgumentError(
      'locks',
      `locks with the same context, or without one; the context of ${quoted(name)} differs`,
      named,
    );
  }
  return context;
}

/**
 * @internal Whether the call should stand in the line of the member at once: as far as its client knows, its other calls have the
 * lock, wait for it, or occupy the hold around the caller, or the lock is kept for another call, or other clients
 * try first. Redis may know better: this orders the calls of a client, and is no reason to fail one.
 */
export function wouldHaveToWait({ runtime, protocol }: Member, context: LockContext | undefined): boolean {
  const parent = innermostHold(runtime, protocol, context);
  if (parent !== undefined) return SingleHold.recordOf(parent).keepsOut(protocol);
  if (runtime.kept.has(protocol.key)) return true;
  const line = runtime.lines.lineFor(protocol);
  if (line.waiterCount > 0 || line.yields) return true;
  return !protocol.concurrent && [...line.holders].some(({ isInUse }) => isInUse);
}

/** @internal The same. Also if the lock becomes busy when a pending request of another call of the client succeeds. */
export function mightHaveToWait(member: Member, context: LockContext | undefined): boolean {
  if (wouldHaveToWait(member, context)) return true;
  const { runtime, protocol } = member;
  const { hasPending: isComing } = runtime.lines.lineFor(protocol);
  return isComing && innermostHold(runtime, protocol, context) === undefined;
}

/** @internal Checks a call from `site` that has waited long for the member. Returns the time until the next check, in ms. */
export const waitedLong = ({ runtime, protocol }: Member, site: CallSite | undefined): number =>
  runtime.longWaits.look({ protocol, site });

/** The ids of the clients of the members, separated by commas. */
export const clientIdsOf = (members: Members): string =>
  [...new Set(members.map(({ runtime }) => runtime.clientId))].join(', ');

/** The groups of the names of the members, each once, separated by commas; `undefined` if no member has one. */
export function groupsOf(members: Members): string | undefined {
  const groups = new Set(members.map(({ protocol }) => protocol.group));
  groups.delete(undefined);
  return groups.size === 0 ? undefined : [...groups].join(', ');
}
