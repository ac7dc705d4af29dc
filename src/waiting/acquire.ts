/*
 * From a call to a hold. A call from inside a hold of the same lock re-enters: it becomes a child of that hold, in its
 * turn. Every other call is a stranger and gets an owner id of its own.
 */
import {
  ClientClosedError,
  ConcurrentContextError,
  LockAbortedError,
  LockTimeoutError,
  LockUpgradeError,
  NonReentrantError,
  type LockError,
  type RedisUnavailableError,
} from '../errors.js';
import { abortedBy, onAbort } from './abort-watch.js';
import { currentHolds, type FlowHold } from '../ownership/flow.js';
import type { HoldRecord, HoldTerms } from '../holding/hold-record.js';
import { holdsOf, isConcurrent, type LockContext } from '../ownership/lock-context.js';
import { LightSet } from '../light-set.js';
import type { LockEntry } from './wait-line.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import type { LockRuntime } from './lock-runtime.js';
import { LONG_WAIT_MS, warnLongWait } from './long-wait.js';
import { openNested } from './nested-hold.js';
import { holdFor, SingleHold } from '../holding/single-hold.js';
import { LockWaiter, type Patience, type Settle } from './waiter.js';

export interface Acquisition {
  readonly protocol: LockProtocol;
  readonly terms: HoldTerms;
  readonly patience: Patience;
  readonly context: LockContext | undefined;
}

/** Fails with `LockTimeoutError` if the lock stays busy. A call that failed leaves nothing behind. */
export function acquire(runtime: LockRuntime, acquisition: Acquisition, settle: Settle): void {
  const { protocol, patience, context } = acquisition;
  if (patience.signal?.aborted === true) {
    return settle.failed(new LockAbortedError(protocol.name, patience.signal.reason));
  }
  const parent = context === undefined ? innermostHold(runtime, protocol) : undefined;
  if (context === undefined && parent === undefined) {
    try {
      checkHoldsAround(runtime, acquisition);
    } catch (error) {
      return settle.failed(error);
    }
    return standInLine(runtime, acquisition, settle);
  }
  const acquired =
    parent === undefined
      ? acquireForContext(runtime, acquisition, context as LockContext)
      : acquireInside(runtime, acquisition, SingleHold.recordOf(parent));
  acquired.then(
    (hold) => settle.granted(hold),
    (error: unknown) => settle.failed(error),
  );
}

/** The innermost hold of this lock that the calling code, or the context, is inside of; it may be lost. */
export function innermostHold(
  runtime: LockRuntime,
  protocol: LockProtocol,
  context?: LockContext,
  accepts: (record: HoldRecord, protocol: LockProtocol) => boolean = (record) => record.state !== 'closed',
): SingleHold | undefined {
  const holds =
    context === undefined ? currentHolds() : (holdsOf(context).holds.get(lockIdentity(runtime, protocol)) ?? []);
  return innermostOf(holds, (hold) => {
    const record = SingleHold.recordOf(hold);
    return (
      record.tenure.runtime === runtime &&
      record.tenure.protocol.key === protocol.key &&
      record.holds(protocol) &&
      accepts(record, protocol)
    );
  });
}

function innermostOf(holds: readonly FlowHold[], accepts: (hold: SingleHold) => boolean): SingleHold | undefined {
  for (let i = holds.length - 1; i >= 0; i -= 1) {
    const hold = holds[i];
    if (hold instanceof SingleHold) {
      if (accepts(hold)) return hold;
    } else if (hold?.members !== undefined) {
      const member = innermostOf(hold.members, accepts);
      if (member !== undefined) return member;
    }
  }
  return undefined;
}

/**
 * A call that is in no hold that it could re-enter, but in one of another family, would wait for its own flow. A call
 * for some of the values that its flow has, and for others, would wait for a flow that may be waiting for it. Both are
 * refused. A call for values of which its flow has none is a stranger.
 */
function checkHoldsAround(runtime: LockRuntime, { protocol, context }: Acquisition): void {
  const { family, parts, name, key } = protocol;
  const holds =
    context === undefined ? currentHolds() : (holdsOf(context).holds.get(lockIdentity(runtime, protocol)) ?? []);
  if (holds.length === 0) return;
  const around = innermostOf(holds, (hold) => {
    const record = SingleHold.recordOf(hold);
    const { state, tenure, protocol: held } = record;
    if (state === 'closed' || tenure.runtime !== runtime || held.key !== key) return false;
    if (held.family !== family) return true;
    return parts !== undefined && held.parts?.overlaps(parts) === true && !record.holds(protocol);
  });
  if (around === undefined) return;
  const record = SingleHold.recordOf(around);
  const held = record.protocol.family;
  if (held === family) {
    throw new LockUpgradeError(
      name,
      'this flow holds some of the values; release them first, or begin with all of them',
    );
  }
  record.tenure.lease.check();
  record.throwIfLost();
  throw new LockUpgradeError(
    name,
    `this flow holds it as another kind of lock (${held}), and would wait for itself; release that hold first, or ` +
      'use one kind of lock for one name',
  );
}

function standInLine(runtime: LockRuntime, { protocol, terms, patience }: Acquisition, settle: Settle): void {
  const waiter = new LockWaiter(runtime, protocol, terms, patience, settle);
  const { ownChannel } = waiter;
  const line = ownChannel === undefined ? lineOf(runtime, protocol) : runtime.entries.ownEntry(ownChannel, protocol);
  line.acquire(waiter);
}

/** Where those stand who wait for the same, but for those who queue in Redis. */
export function lineOf(runtime: LockRuntime, { key, channel, polls, half, parts }: LockProtocol): LockEntry {
  return runtime.entries.entry(key, channel, polls === undefined ? (parts?.line ?? half) : 'spin');
}

function acquireOutermost(runtime: LockRuntime, acquisition: Acquisition): Promise<SingleHold> {
  // Either may have come while the call waited for its turn, where nobody listened.
  if (runtime.closed) return Promise.reject(new ClientClosedError());
  const { signal } = acquisition.patience;
  if (signal?.aborted === true) {
    return Promise.reject(new LockAbortedError(acquisition.protocol.name, signal.reason));
  }
  return new Promise((granted, failed) => standInLine(runtime, acquisition, { granted, failed }));
}

async function acquireInside(runtime: LockRuntime, acquisition: Acquisition, parent: HoldRecord): Promise<SingleHold> {
  const { protocol, patience } = acquisition;
  parent.tenure.lease.check();
  parent.throwIfLost();
  // The signal may have fired while the call changed from one hold to the next, when it had no listener.
  if (patience.signal?.aborted === true) throw new LockAbortedError(protocol.name, patience.signal.reason);
  if (!protocol.reentrant) throw new NonReentrantError(protocol.name);
  if (!mayEnter(protocol, parent)) throw new LockUpgradeError(protocol.name);
  let record: HoldRecord | undefined;
  if (await takeTurn(runtime, acquisition, parent)) {
    try {
      record = await openInside(acquisition, parent);
    } finally {
      if (record === undefined) parent.leave();
    }
  }
  if (record === undefined) {
    // The parent was given back while we waited. Who is inside one of its own parents still is; else we are a stranger.
    const outer = openAncestor(parent, protocol);
    if (outer !== undefined) return acquireInside(runtime, acquisition, outer);
    checkHoldsAround(runtime, acquisition);
    return acquireOutermost(runtime, acquisition);
  }
  if (record.told === 'nothing') {
    // In the background: nobody waits for it but what comes next. A lost parent is told by its own means.
    parent.tenure.release(record).catch(() => undefined);
    // But nobody fails while an attempt may still run.
    await parent.tenure.turns.whenNoStray();
    throw new LockAbortedError(protocol.name, patience.signal?.reason);
  }
  return holdFor(record);
}

/** An aborted call does not wait for the requests before its own, which is not sent then. */
function openInside(
  { protocol, terms, patience: { signal } }: Acquisition,
  parent: HoldRecord,
): Promise<HoldRecord | undefined> {
  // The write around it may have been given back by a request before its own.
  const allowed = (): void => {
    if (!mayEnter(protocol, parent)) throw new LockUpgradeError(protocol.name);
  };
  const call = { protocol, terms, signal, begins: allowed };
  if (signal === undefined) return openNested(parent, call);
  return new Promise((opened, failed) => {
    const aborted = (): LockAbortedError => new LockAbortedError(protocol.name, signal.reason);
    if (signal.aborted) return failed(aborted());
    const unwatch = onAbort(signal, () => failed(aborted()));
    const begins = (): void => {
      unwatch();
      if (signal.aborted) throw aborted();
      allowed();
    };
    void openNested(parent, { ...call, begins })
      .then(opened, failed)
      .finally(unwatch);
  });
}

/** A write would wait for the end of a read hold that waits for it, or may do so. */
const mayEnter = ({ half }: LockProtocol, parent: HoldRecord): boolean =>
  half !== 'write' || (isInsideWrite(parent) && !parent.besideReaders);

function isInsideWrite(hold: HoldRecord | undefined): boolean {
  for (let each = hold; each !== undefined; each = each.parent) {
    if (each.half === 'write' && each.state === 'open') return true;
  }
  return false;
}

function openAncestor({ parent }: HoldRecord, protocol: LockProtocol): HoldRecord | undefined {
  let ancestor = parent;
  while (ancestor?.state === 'closed') ancestor = ancestor.parent;
  return ancestor?.holds(protocol) === true ? ancestor : undefined;
}

/** Directly inside a hold one branch has the lock at a time. False: the parent was given back meanwhile. */
function takeTurn(
  runtime: LockRuntime,
  { protocol, terms, patience }: Acquisition,
  parent: HoldRecord,
): Promise<boolean> {
  if (parent.enter(protocol.half)) return Promise.resolve(true);
  const { clock } = runtime;
  if (patience.until <= clock.now()) {
    return Promise.reject(new LockTimeoutError(protocol.name, patience.waitTime));
  }
  return new Promise((resolve, reject) => {
    const turns = (parent.turns ??= new LightSet());
    const { until, signal } = patience;
    const leave = (): void => {
      turns.delete(wake);
      timer?.cancel();
      longWait.cancel();
      unwatch?.();
    };
    const fail = (error: LockError): void => (leave(), reject(error));
    const wake = (away?: RedisUnavailableError): void => {
      if (away !== undefined) {
        // One command deadline without Redis is enough for those who set no limit themselves.
        if (until === Infinity) fail(away);
        return;
      }
      if (parent.loss !== undefined) return fail(parent.loss);
      if (parent.state === 'open') {
        if (!mayEnter(protocol, parent)) return fail(new LockUpgradeError(protocol.name));
        if (!parent.enter(protocol.half)) return;
      }
      leave();
      resolve(parent.state === 'open');
    };
    const timer =
      until === Infinity
        ? undefined
        : clock.setTimer(until, () => fail(new LockTimeoutError(protocol.name, patience.waitTime)));
    const longWait = clock.clock.setTimer(LONG_WAIT_MS, () => warnLongWait({ protocol, site: terms.site }, parent));
    const unwatch = signal && onAbort(signal, () => fail(abortedBy(signal, protocol.name)));
    turns.add(wake);
  });
}

async function acquireForContext(
  runtime: LockRuntime,
  acquisition: Acquisition,
  context: LockContext,
): Promise<SingleHold> {
  const { protocol } = acquisition;
  const { holds, acquiring } = holdsOf(context);
  const identity = lockIdentity(runtime, protocol);
  const call = { identity, protocol };
  if (isConcurrent(context, call)) throw new ConcurrentContextError(protocol.name, context.id);
  acquiring.add(call);
  try {
    const parent = innermostHold(runtime, protocol, context);
    if (parent === undefined) checkHoldsAround(runtime, acquisition);
    const hold = await (parent === undefined
      ? acquireOutermost(runtime, acquisition)
      : acquireInside(runtime, acquisition, SingleHold.recordOf(parent)));
    holds.set(identity, [...(holds.get(identity) ?? []), hold]);
    SingleHold.recordOf(hold).forget = forgetting(holds, identity, hold);
    return hold;
  } finally {
    acquiring.delete(call);
  }
}

function forgetting(holds: Map<string, SingleHold[]>, identity: string, hold: SingleHold): () => void {
  return () => {
    const others = (holds.get(identity) ?? []).filter((other) => other !== hold);
    if (others.length > 0) holds.set(identity, others);
    else holds.delete(identity);
  };
}

const lockIdentity = (runtime: LockRuntime, protocol: LockProtocol): string => `${runtime.clientId} ${protocol.key}`;
