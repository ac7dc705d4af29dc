/*
 * From a call to a hold. A call from inside a hold of the same lock re-enters: the call opens a nested hold as soon as no
 * other branch of the outer hold uses the lock. Every other call is a stranger and gets an owner id of its own.
 */
import { within } from '../clock.js';
import type { Reports } from '../diagnostics/reports.js';
import { ClientClosedError, LockAbortedError, LockUpgradeError, NonReentrantError } from '../errors.js';
import type { HoldRecord, HoldTerms } from '../holding/hold-record.js';
import {
  checkHoldsAround,
  innermostHold,
  lockIdentity,
  serves,
  type HoldOwner,
  type ServingClient,
} from '../holding/innermost-hold.js';
import { openNested } from '../holding/nested-hold.js';
import { SingleHold, type MakeHold } from '../holding/single-hold.js';
import type { Tenure } from '../holding/tenure.js';
import { currentHolds } from '../ownership/flow.js';
import { acquireUnder, forgetUnder, type LockContext } from '../ownership/lock-context.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import { abortedBy, onAbort, type WaitLimit } from './limits/wait-limit.js';
import type { KeptLocks } from './hand-overs/kept-locks.js';
import type { LocalHandOvers } from './hand-overs/local-hand-over.js';
import { mayEnter, waitForBranch } from './branches.js';
import type { WaitLines } from './wait-lines.js';
import { LockWaiter, type LockWaiterServices } from './lock-waiter.js';
import type { Settle } from './waiter.js';

/** The services of the client that an acquisition uses. */
export interface AcquireServices extends LockWaiterServices, HoldOwner, ServingClient {
  readonly reports: Reports;
  readonly lines: WaitLines;
  readonly kept: KeptLocks<LockWaiter>;
  readonly localHandOvers: LocalHandOvers;
}

export interface Acquisition {
  readonly protocol: LockProtocol;
  readonly terms: HoldTerms;
  readonly limit: WaitLimit;
  readonly context: LockContext | undefined;
  /** Creates the hold object for the caller, in the class of this kind of lock. */
  readonly makeHold: MakeHold;
}

/**
 * Acquires the lock and settles the call. If the lock stays busy, the call fails with `LockTimeoutError`. A failed call
 * leaves no hold and no waiter.
 */
export function acquire(services: AcquireServices, acquisition: Acquisition, caller: Settle): void {
  const { protocol, terms, limit, context } = acquisition;
  const settle = services.reports.acquiring(protocol, terms, caller);
  if (limit.signal?.aborted === true) return settle.failed(abortedBy(limit.signal, protocol.name));
  if (services.client.draining && !serves(services, { around: currentHolds(), context })) {
    return settle.failed(new ClientClosedError());
  }
  if (context !== undefined) return settleWith(acquireForContext(services, acquisition, context), settle);
  const around = innermostHold(services, protocol);
  if (around !== undefined) return settleWith(acquireInside(services, acquisition, around), settle);
  try {
    checkHoldsAround(services, protocol, undefined);
  } catch (error) {
    return settle.failed(error);
  }
  startWaiter(services, acquisition, settle);
}

function settleWith(acquired: Promise<SingleHold>, settle: Settle): void {
  acquired.then(
    (hold) => settle.granted(hold),
    (error: unknown) => settle.failed(error),
  );
}

/** Acquires the lock for a stranger: a new waiter joins the line. It gets its owner id when it first needs one. */
function startWaiter(services: AcquireServices, acquisition: Acquisition, settle: Settle): void {
  const waiter = new LockWaiter(services, acquisition, settle);
  const { lines } = services;
  const { ownChannel, protocol } = waiter;
  const line = ownChannel === undefined ? lines.lineFor(protocol) : lines.ownLine(ownChannel, protocol);
  const join = (): void => {
    const { signal } = acquisition.limit;
    if (signal?.aborted === true) waiter.reject(abortedBy(signal, protocol.name));
    else line.join(waiter);
  };
  // A release that no caller waits for is ahead of this call. A single try could overtake it, because Redis may ask for
  // the script of the release again. While Redis hangs, the call must not wait for two command deadlines.
  const joinBehindReleases = (): void => {
    const isOneTry = acquisition.limit.kind === 'one try';
    const release = isOneTry ? services.tenures.backgroundReleases.of(protocol.key) : undefined;
    if (release === undefined) join();
    else void within(services.clock.clock, services.options.attemptMs, release).then(join);
  };
  if (services.kept.has(protocol.key)) void followKept(services, waiter, joinBehindReleases);
  else joinBehindReleases();
}

/** The lock is kept. The call enters it, or the client releases it. `join` makes the call join its line. */
async function followKept({ kept, localHandOvers }: AcquireServices, waiter: LockWaiter, join: () => void) {
  const { key } = waiter.protocol;
  await localHandOvers.yieldToEvents();
  // The lock stays for the next call.
  if (waiter.limit.signal?.aborted === true) return join();
  if (kept.follow(key, waiter)) return;
  // The try of a call that does not wait, or of a call for the other side of the lock, goes behind the release.
  if (waiter.limit.kind === 'one try' || !kept.isSameSide(waiter.protocol)) void kept.release(key);
  // A call for the same side gets the lock by a hand-over.
  join();
  void kept.release(key);
}

function acquireOutermost(services: AcquireServices, acquisition: Acquisition): Promise<SingleHold> {
  // A call that left a hold had no listener meanwhile: the client may have closed, or the signal may have aborted.
  if (services.client.closed) return Promise.reject(new ClientClosedError());
  const { signal } = acquisition.limit;
  if (signal?.aborted === true) return Promise.reject(abortedBy(signal, acquisition.protocol.name));
  return new Promise((granted, failed) => startWaiter(services, acquisition, { granted, failed }));
}

const acquireInside = (services: AcquireServices, acquisition: Acquisition, around: SingleHold): Promise<SingleHold> =>
  reenter(services, acquisition, SingleHold.tenureOf(around), SingleHold.recordOf(around));

async function reenter(
  services: AcquireServices,
  acquisition: Acquisition,
  tenure: Tenure,
  parent: HoldRecord,
): Promise<SingleHold> {
  const { protocol, limit, context } = acquisition;
  tenure.lease.check();
  parent.throwIfLost();
  // A call that moves on to an outer hold has no listener meanwhile, so the signal may have aborted.
  if (limit.signal?.aborted === true) throw abortedBy(limit.signal, protocol.name);
  if (!protocol.reentrant) throw new NonReentrantError(protocol.name);
  if (!mayEnter(protocol, parent)) throw new LockUpgradeError(protocol.name);
  let record: HoldRecord | undefined;
  if (await waitForBranch(services.clock, acquisition, parent)) {
    try {
      record = await openInside(services, acquisition, tenure, parent);
    } finally {
      if (record === undefined) parent.leave();
    }
  }
  if (record === undefined) {
    // The parent was released meanwhile. If a hold of this lock around the parent is still open, the call re-enters
    // that hold. Otherwise the call is a stranger.
    const outer = openAncestor(parent, protocol);
    if (outer !== undefined) return reenter(services, acquisition, tenure, outer);
    checkHoldsAround(services, protocol, context);
    return acquireOutermost(services, acquisition);
  }
  if (record.isUnclaimed) {
    // The call was aborted before Redis replied. Release the hold. The call does not wait for the release; the next
    // request of the tenure does. Ignore its error: a lost parent reports its loss itself.
    tenure.release(record).catch(() => undefined);
    // The call must not fail while one of its attempts may still run in Redis.
    await tenure.turns.whenNoDoubt();
    throw new LockAbortedError(protocol.name, limit.signal?.reason);
  }
  return acquisition.makeHold(tenure, record);
}

/**
 * Opens the nested hold. An aborted call does not wait for the earlier requests of the tenure. The request of the
 * aborted call is then not sent.
 */
function openInside(
  services: AcquireServices,
  { protocol, terms, limit: { signal } }: Acquisition,
  tenure: Tenure,
  parent: HoldRecord,
): Promise<HoldRecord | undefined> {
  // An earlier request of the tenure may have released the exclusive hold around this call.
  const checkUpgrade = (): void => {
    if (!mayEnter(protocol, parent)) throw new LockUpgradeError(protocol.name);
  };
  const call = { protocol, terms, signal, client: services.client, beforeSending: checkUpgrade };
  if (signal === undefined) return openNested(tenure, parent, call);
  return new Promise((opened, failed) => {
    const aborted = (): LockAbortedError => new LockAbortedError(protocol.name, signal.reason);
    if (signal.aborted) return failed(aborted());
    const unwatch = onAbort(signal, () => failed(aborted()));
    const beforeSending = (): void => {
      unwatch();
      if (signal.aborted) throw aborted();
      checkUpgrade();
    };
    void openNested(tenure, parent, { ...call, beforeSending })
      .then(opened, failed)
      .finally(unwatch);
  });
}

function openAncestor({ parent }: HoldRecord, protocol: LockProtocol): HoldRecord | undefined {
  let ancestor = parent;
  while (ancestor?.isClosed === true) ancestor = ancestor.parent;
  return ancestor?.holds(protocol) === true ? ancestor : undefined;
}

function acquireForContext(
  services: AcquireServices,
  acquisition: Acquisition,
  context: LockContext,
): Promise<SingleHold> {
  const { protocol } = acquisition;
  const identity = lockIdentity(services, protocol);
  const call = { lockName: protocol.name, identity, lockedValues: protocol.lockedValues, list: identity };
  return acquireUnder(context, call, async () => {
    const around = innermostHold(services, protocol, context);
    if (around === undefined) checkHoldsAround(services, protocol, context);
    const hold = await (around === undefined
      ? acquireOutermost(services, acquisition)
      : acquireInside(services, acquisition, around));
    const forget = (): void => forgetUnder(context, identity, hold);
    SingleHold.recordOf(hold).forget = forget;
    return hold;
  });
}
