/*
 * A hold that its caller released with `after`: Redis keeps it for that time, no caller is inside, and no renewal
 * extends it. The client releases it at its end, because waiters may know of a longer lease from their last try, and only
 * a message wakes them sooner. If this process exits, the lease in Redis ends the hold.
 */
import type { LeaseClock, MonotonicMs } from '../clock.js';
import type { LossReason } from '../errors.js';
import { sendRelease, type LockProtocol } from '../protocols/lock-protocol.js';
import type { Compensations } from './compensations.js';
import type { HoldRecord } from './hold-record.js';
import { wholeMs } from '../lease-time.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { HeldReply } from '../redis/scripts/replies.js';
import { LEASE_BEYOND_MS, RELEASE_BEFORE_END_MS } from '../timing.js';

/** The holds of a tenure, for the request that keeps them in Redis. */
interface RemainingTenure {
  readonly protocol: LockProtocol;
  readonly owner: string;
  readonly holds: readonly HoldRecord[];
  readonly lease: { recordLease(leaseMs: number): void };
}

/** The tenure, for its releases in the background. */
interface LeavingTenure extends RemainingTenure {
  readonly services: { readonly clock: LeaseClock; readonly compensations: Compensations };
  readonly lease: { readonly lastEnd: number; recordLease(leaseMs: number): void };
}

/** Whether the caller of the hold has released it, and Redis keeps it. */
export const isLeft = ({ leftUntil }: HoldRecord): boolean => leftUntil !== undefined;

/** Whether a caller has the hold. */
export const hasCaller = ({ leftUntil }: HoldRecord): boolean => leftUntil === undefined;

/** Number of holds that a caller has. */
export const countOpen = (holds: readonly HoldRecord[]): number => holds.filter(hasCaller).length;

/** Sends the counts of all holds that Redis has to keep, and their remaining leases. `now`: lease clock time, in ms. */
export function sendRemaining(
  { protocol, owner, holds, lease }: RemainingTenure,
  now: number,
): ScriptRequest<HeldReply> {
  const remaining = holds.map((hold) => ({
    side: hold.side,
    protocol: hold.protocol,
    leftMs: wholeMs(now, hold.leftUntil === undefined ? hold.leaseEnd : hold.leftUntil + LEASE_BEYOND_MS),
  }));
  const leaseMs = Math.max(1, ...remaining.map(({ leftMs }) => leftMs));
  lease.recordLease(leaseMs);
  return protocol.releasePartial(owner, remaining, leaseMs);
}

/** Redis has confirmed until when it keeps the released holds: their leases end then. The other holds are unchanged. */
export function confirmLeft(holds: readonly HoldRecord[]): void {
  for (const hold of holds) hold.leaseEnd = hold.leftUntil ?? hold.leaseEnd;
}

/** Monotonic time, in ms, at which the last such hold ends; 0 without such a hold. */
function lastLeftUntil({ services: { clock }, holds }: LeavingTenure): number {
  const left = Math.max(0, ...holds.map(({ leftUntil = 0 }) => leftUntil - clock.now()));
  return left === 0 ? 0 : clock.clock.monotonic() + left;
}

/** Releases the owners of holds that Redis keeps, at the end of these holds. */
export function releaseLeft(tenure: LeavingTenure, owners: readonly string[], until = 0): Promise<void> {
  return tenure.services.compensations.add({
    send: () => sendRelease(tenure.protocol, owners),
    notBefore: lastLeftUntil(tenure),
    until: Math.max(tenure.lease.lastEnd, until),
    optional: true,
  });
}

/** A release of a tenure that no caller still has. */
export interface BackgroundRelease {
  /** Further owners that may have the lock. */
  readonly alsoOwners?: readonly string[];
  /** Until when a request of one of the owners may still run. */
  readonly doubtUntil?: MonotonicMs;
  /** When the lease of the further owners has ended. */
  readonly leaseEnd?: MonotonicMs;
  /** As of a {@link Compensation}. */
  readonly optional?: boolean;
}

/** Whether the tenure is lost at its deadline. Redis may still have it. */
export const isByClock = (reason: LossReason): boolean => reason === 'expired' || reason === 'maxHoldTime';

/** A tenure, at the moment of its loss. */
interface LosingTenure extends RemainingTenure {
  readonly lease: {
    readonly givenEnd: MonotonicMs;
    readonly hasRenewed: boolean;
    readonly watched: boolean;
    recordLease(leaseMs: number): void;
  };
  readonly confirmation?: object | undefined;
  readonly acquireIsDoubtful: boolean;
}

/**
 * The release of a tenure that is lost now; `undefined`: none is needed. `doubtUntil`: until when a request of the owner
 * may still run, and `undefined` if the acquire was its only one.
 */
export function releaseAfterLoss(
  { acquireIsDoubtful, confirmation, lease, protocol }: LosingTenure,
  reason: LossReason,
  doubtUntil: MonotonicMs | undefined,
): BackgroundRelease | undefined {
  if (!isByClock(reason)) {
    // An owner that has lost one part of the lock may still have the other parts.
    if (protocol.lockedValues !== undefined) return { doubtUntil: doubtUntil ?? 0 };
    return acquireIsDoubtful ? {} : undefined;
  }
  // An unanswered request may have set a longer lease than this client knows of, and the key of a lock that other sections
  // may follow outlasts the lease of each hold.
  const inDoubt = lease.watched || lease.hasRenewed || (doubtUntil ?? 0) > 0 || acquireIsDoubtful;
  const optional = lease.givenEnd > 0 && !inDoubt && confirmation === undefined;
  // Redis ends the lease that the caller gave, and waiters know when.
  const isShared = protocol.concurrent || protocol.lockedValues !== undefined;
  if (optional && !isShared && doubtUntil === undefined) return undefined;
  // A waiter may have seen a longer lease. Only a message wakes it in time, so the release comes right before the end.
  return { doubtUntil: Math.max(doubtUntil ?? 0, lease.givenEnd - RELEASE_BEFORE_END_MS), optional };
}

/**
 * Releases the owner of the tenure in the background. A hold that Redis keeps is released at its end, whether or not the
 * request for that has run.
 */
export async function releaseInBackground(
  tenure: LeavingTenure,
  { alsoOwners = [], doubtUntil: notBefore = 0, leaseEnd: until = 0, optional = false }: BackgroundRelease,
): Promise<void> {
  const owners = [tenure.owner, ...alsoOwners];
  const { compensations } = tenure.services;
  const leftUntil = lastLeftUntil(tenure);
  if (leftUntil > 0) {
    await compensations.add({
      send: () => sendRemaining(tenure, tenure.services.clock.now()),
      notBefore,
      until: leftUntil,
    });
    return releaseLeft(tenure, owners, until);
  }
  const send = () => sendRelease(tenure.protocol, owners);
  return compensations.add({ send, notBefore, until: Math.max(tenure.lease.lastEnd, until), optional });
}
