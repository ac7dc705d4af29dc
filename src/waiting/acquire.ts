/*
 * From a call to a hold. A call from inside a hold of the same lock re-enters: it becomes a child of that hold, when the
 * other branches leave it a place. Every other call is a stranger and gets an owner id of its own.
 */
import {
  ClientClosedError,
  ConcurrentContextError,
  LockAbortedError,
  LockUpgradeError,
  NonReentrantError,
} from '../errors.js';
import type { HoldRecord, HoldTerms } from '../holding/hold-record.js';
import { checkHoldsAround, innermostHold, lockIdentity, type HoldOwner } from '../holding/innermost-hold.js';
import { openNested } from '../holding/nested-hold.js';
import { SingleHold, type MakeHold } from '../holding/single-hold.js';
import type { Tenure } from '../holding/tenure.js';
import type { FlowHold } from '../ownership/flow.js';
import { holdsOf, isConcurrent, type LockContext } from '../ownership/lock-context.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import { onAbort } from '../abort-watch.js';
import { mayEnter, waitForBranch } from './branches.js';
import type { WaitLines } from './wait-lines.js';
import { LockWaiter, type LockWaiterServices, type Settle, type WaitLimit } from './waiter.js';

/** What an acquisition needs of its client. */
export interface AcquireServices extends LockWaiterServices, HoldOwner {
  readonly client: { readonly closed: boolean };
  readonly lines: WaitLines;
}

export interface Acquisition {
  readonly protocol: LockProtocol;
  readonly terms: HoldTerms;
  readonly limit: WaitLimit;
  readonly context: LockContext | undefined;
  /** What the caller gets: a class of the kind of lock. */
  readonly makeHold: MakeHold;
}

/** Fails with `LockTimeoutError` if the lock stays busy. A call that failed leaves nothing behind. */
export function acquire(services: AcquireServices, acquisition: Acquisition, settle: Settle): void {
  const { protocol, limit, context } = acquisition;
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
    return standInLine(services, acquisition, settle);
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

function standInLine(services: AcquireServices, acquisition: Acquisition, settle: Settle): void {
  const waiter = new LockWaiter(services, acquisition, settle);
  const { lines } = services;
  const { ownChannel, protocol } = waiter;
  const line = ownChannel === undefined ? lines.lineFor(protocol) : lines.ownLine(ownChannel, protocol);
  line.acquire(waiter);
}

function acquireOutermost(services: AcquireServices, acquisition: Acquisition): Promise<SingleHold> {
  // The client may have been closed, or the signal fired, while the call waited for its branch without a listener.
  if (services.client.closed) return Promise.reject(new ClientClosedError());
  const { signal } = acquisition.limit;
  if (signal?.aborted === true) {
    return Promise.reject(new LockAbortedError(acquisition.protocol.name, signal.reason));
  }
  return new Promise((granted, failed) => standInLine(services, acquisition, { granted, failed }));
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
  // The signal may have fired while the call changed from one hold to the next, when it had no listener.
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
    // The parent was released meanwhile. A call that is inside one of its parents re-enters there; others are strangers.
    const outer = openAncestor(parent, protocol);
    if (outer !== undefined) return acquireInside(services, acquisition, tenure, outer);
    checkHoldsAround(services, protocol, context);
    return acquireOutermost(services, acquisition);
  }
  if (record.told === 'nothing') {
    // In the background: only the next request waits for it. A lost parent reports its loss itself.
    tenure.release(record).catch(() => undefined);
    // A call does not fail while an attempt of it may still run.
    await tenure.turns.whenNoStray();
    throw new LockAbortedError(protocol.name, limit.signal?.reason);
  }
  return acquisition.makeHold(tenure, record);
}

/** An aborted call does not wait for the requests before its own, which is not sent then. */
function openInside(
  services: AcquireServices,
  { protocol, terms, limit: { signal } }: Acquisition,
  tenure: Tenure,
  parent: HoldRecord,
): Promise<HoldRecord | undefined> {
  // A request before its own may have released the exclusive hold around it.
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
  while (ancestor?.state === 'closed') ancestor = ancestor.parent;
  return ancestor?.holds(protocol) === true ? ancestor : undefined;
}

async function acquireForContext(
  services: AcquireServices,
  acquisition: Acquisition,
  context: LockContext,
): Promise<SingleHold> {
  const { protocol } = acquisition;
  const { holds, acquiring } = holdsOf(context);
  const identity = lockIdentity(services, protocol);
  const call = { identity, parts: protocol.parts };
  if (isConcurrent(context, call)) throw new ConcurrentContextError(protocol.name, context.id);
  acquiring.add(call);
  try {
    const parent = innermostHold(services, protocol, context);
    if (parent === undefined) checkHoldsAround(services, protocol, context);
    const hold = await (parent === undefined
      ? acquireOutermost(services, acquisition)
      : acquireInside(services, acquisition, SingleHold.tenureOf(parent), SingleHold.recordOf(parent)));
    holds.set(identity, [...(holds.get(identity) ?? []), hold]);
    SingleHold.recordOf(hold).forget = forgetting(holds, identity, hold);
    return hold;
  } finally {
    acquiring.delete(call);
  }
}

function forgetting(holds: Map<string, FlowHold[]>, identity: string, hold: FlowHold): () => void {
  return () => {
    const others = (holds.get(identity) ?? []).filter((other) => other !== hold);
    if (others.length > 0) holds.set(identity, others);
    else holds.delete(identity);
  };
}
