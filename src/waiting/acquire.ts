/*
 * From a call to a hold. A call from inside a hold of the same lock re-enters: the call opens a nested hold as soon as
 * the other branches of the outer hold leave a place. Every other call is a stranger and gets its own owner id.
 */
import type { Reports } from '../diagnostics/reports.js';
import { ClientClosedError, LockAbortedError, LockUpgradeError, NonReentrantError } from '../errors.js';
import type { HoldRecord, HoldTerms } from '../holding/hold-record.js';
import { checkHoldsAround, innermostHold, lockIdentity, type HoldOwner } from '../holding/innermost-hold.js';
import { openNested } from '../holding/nested-hold.js';
import { SingleHold, type MakeHold } from '../holding/single-hold.js';
import type { Tenure } from '../holding/tenure.js';
import { acquireUnder, forgetUnder, type LockContext } from '../ownership/lock-context.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import { onAbort } from '../abort-watch.js';
import { mayEnter, waitForBranch } from './branches.js';
import type { WaitLines } from './wait-lines.js';
import { LockWaiter, type LockWaiterServices } from './lock-waiter.js';
import type { Settle, WaitLimit } from './waiter.js';

/** The services of the client that an acquisition uses. */
export interface AcquireServices extends LockWaiterServices, HoldOwner {
  readonly reports: Reports;
  readonly client: { readonly closed: boolean };
  readonly lines: WaitLines;
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
  const settle = services.reports.acquiring(protocol, terms.askedAt, caller);
  if (limit.signal?.aborted === true) {
    return settle.failed(new LockAbortedError(protocol.name, limit.signal.reason));
  }
  const parent = context === undefined ? innermostHold(services, protocol) : undefined;
  if (context === undefined && parent === undefined) {
    try {
      checkHoldsAround(services, protocol, context);
    } catch (error) {
      return settle.failed(error);
    }
    return startWaiter(services, acquisition, settle);
  }
  const acquired =
    parent === undefined
      ? acquireForContext(services, acquisition, context as LockContext)
      : acquireInside(services, acquisition, SingleHold.tenureOf(parent), SingleHold.recordOf(parent));
  acquired.then(
    (hold) => settle.granted(hold),
    (error: unknown) => settle.failed(error),
  );
}

function startWaiter(services: AcquireServices, acquisition: Acquisition, settle: Settle): void {
  const waiter = new LockWaiter(services, acquisition, settle);
  const { lines } = services;
  const { ownChannel, protocol } = waiter;
  const line = ownChannel === undefined ? lines.lineFor(protocol) : lines.ownLine(ownChannel, protocol);
  line.join(waiter);
}

function acquireOutermost(services: AcquireServices, acquisition: Acquisition): Promise<SingleHold> {
  // While the call waited for its branch, it had no listener. The client may have closed, or the signal may have
  // aborted.
  if (services.client.closed) return Promise.reject(new ClientClosedError());
  const { signal } = acquisition.limit;
  if (signal?.aborted === true) {
    return Promise.reject(new LockAbortedError(acquisition.protocol.name, signal.reason));
  }
  return new Promise((granted, failed) => startWaiter(services, acquisition, { granted, failed }));
}

async function acquireInside(
  services: AcquireServices,
  acquisition: Acquisition,
  tenure: Tenure,
  parent: HoldRecord,
): Promise<SingleHold> {
  const { protocol, limit, context } = acquisition;
  tenure.lease.check();
  parent.throwIfLost();
  // A call that moves on to an outer hold has no listener meanwhile, so the signal may have aborted.
  if (limit.signal?.aborted === true) throw new LockAbortedError(protocol.name, limit.signal.reason);
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
    if (outer !== undefined) return acquireInside(services, acquisition, tenure, outer);
    checkHoldsAround(services, protocol, context);
    return acquireOutermost(services, acquisition);
  }
  if (record.told === 'nothing') {
    // The call was aborted before Redis replied. Release the hold in the background: only the next request of the
    // tenure waits for this release. Ignore its error: a lost parent reports its loss itself.
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
  const allowed = (): void => {
    if (!mayEnter(protocol, parent)) throw new LockUpgradeError(protocol.name);
  };
  const call = { protocol, terms, signal, client: services.client, begins: allowed };
  if (signal === undefined) return openNested(tenure, parent, call);
  return new Promise((opened, failed) => {
    const aborted = (): LockAbortedError => new LockAbortedError(protocol.name, signal.reason);
    if (signal.aborted) return failed(aborted());
    const unwatch = onAbort(signal, () => failed(aborted()));
    const begins = (): void => {
      unwatch();
      if (signal.aborted) throw aborted();
      allowed();
    };
    void openNested(tenure, parent, { ...call, begins })
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
  const call = { lockName: protocol.name, identity, parts: protocol.lockedValues, list: identity };
  return acquireUnder(context, call, async () => {
    const parent = innermostHold(services, protocol, context);
    if (parent === undefined) checkHoldsAround(services, protocol, context);
    const hold = await (parent === undefined
      ? acquireOutermost(services, acquisition)
      : acquireInside(services, acquisition, SingleHold.tenureOf(parent), SingleHold.recordOf(parent)));
    const forget = (): void => forgetUnder(context, identity, hold);
    SingleHold.recordOf(hold).forget = forget;
    return hold;
  });
}
