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
import { onAbort } from './abort-watch.js';
import { currentHolds } from './flow.js';
import { Hold, holdFor } from './hold.js';
import type { HoldRecord } from './hold-record.js';
import { holdsOf, type LockContext } from './lock-context.js';
import type { LockProtocol } from './lock-protocol.js';
import type { LockRuntime } from './lock-runtime.js';
import { LONG_WAIT_MS, warnLongWait } from './long-wait.js';
import type { HoldTerms } from './tenure.js';
import { LockWaiter, type Patience, type Settle } from './waiter.js';

export interface Acquisition {
  readonly protocol: LockProtocol;
  readonly terms: HoldTerms;
  readonly patience: Patience;
  readonly context: LockContext | undefined;
}

/** Fails with `LockTimeoutError` if the lock stays busy. Nothing is left behind by a call that failed. */
export function acquire(runtime: LockRuntime, acquisition: Acquisition, settle: Settle): void {
  const { protocol, patience, context } = acquisition;
  if (patience.signal?.aborted === true) {
    settle.failed(new LockAbortedError(protocol.name, patience.signal.reason));
    return;
  }
  const parent = context === undefined ? innermostHold(runtime, protocol) : undefined;
  if (context === undefined && parent === undefined) {
    standInLine(runtime, acquisition, settle);
    return;
  }
  const acquired =
    parent === undefined
      ? acquireForContext(runtime, acquisition, context as LockContext)
      : acquireInside(runtime, acquisition, Hold.recordOf(parent));
  acquired.then(settle.granted, settle.failed);
}

/** The innermost hold of this lock that the calling code, or the context, is inside of; it may be lost. */
export function innermostHold(
  runtime: LockRuntime,
  protocol: LockProtocol,
  context?: LockContext,
  accepts: (record: HoldRecord, protocol: LockProtocol) => boolean = (record) => record.state !== 'closed',
): Hold | undefined {
  const holds =
    context === undefined ? currentHolds() : (holdsOf(context).holds.get(lockIdentity(runtime, protocol)) ?? []);
  for (let i = holds.length - 1; i >= 0; i -= 1) {
    const hold = holds[i];
    if (!(hold instanceof Hold)) continue;
    const record = Hold.recordOf(hold);
    const { tenure } = record;
    if (tenure.runtime === runtime && tenure.protocol.key === protocol.key && accepts(record, protocol)) return hold;
  }
  return undefined;
}

function standInLine(runtime: LockRuntime, { protocol, terms, patience }: Acquisition, settle: Settle): void {
  const waiter = new LockWaiter(runtime, protocol, terms, patience, settle);
  const { ownChannel } = waiter;
  const { entries } = runtime;
  if (ownChannel !== undefined) return entries.ownEntry(ownChannel, protocol).acquire(waiter);
  entries.entry(protocol.channel, protocol.polls === undefined ? protocol.half : 'spin').acquire(waiter);
}

function acquireOutermost(runtime: LockRuntime, acquisition: Acquisition): Promise<Hold> {
  // Either may have come while the call waited for its turn, where nobody listened.
  if (runtime.closed) return Promise.reject(new ClientClosedError());
  const { signal } = acquisition.patience;
  if (signal?.aborted === true) {
    return Promise.reject(new LockAbortedError(acquisition.protocol.name, signal.reason));
  }
  return new Promise((granted, failed) => standInLine(runtime, acquisition, { granted, failed }));
}

async function acquireInside(runtime: LockRuntime, acquisition: Acquisition, parent: HoldRecord): Promise<Hold> {
  const { protocol, terms, patience } = acquisition;
  parent.tenure.check();
  if (parent.loss !== undefined) throw parent.loss;
  if (!protocol.reentrant) throw new NonReentrantError(protocol.name);
  if (protocol.half === 'write' && !isInsideWrite(parent)) throw new LockUpgradeError(protocol.name);
  let record: HoldRecord | undefined;
  if (await takeTurn(runtime, acquisition, parent)) {
    try {
      record = await parent.tenure.openNested(parent, terms, protocol);
    } finally {
      if (record === undefined) parent.leave();
    }
  }
  if (record === undefined) {
    // The parent was given back while we waited. Who is inside one of its own parents still is; else we are a stranger.
    const outer = openAncestor(parent);
    if (outer !== undefined) return acquireInside(runtime, acquisition, outer);
    return acquireOutermost(runtime, acquisition);
  }
  if (patience.signal?.aborted === true) {
    await parent.tenure.release(record).catch(() => undefined); // a lost parent is told by its own means
    throw new LockAbortedError(protocol.name, patience.signal.reason);
  }
  return holdFor(record);
}

/** Else it would wait for the end of a read hold that waits for it. */
function isInsideWrite(hold: HoldRecord | undefined): boolean {
  for (let each = hold; each !== undefined; each = each.parent) {
    if (each.half === 'write' && each.state === 'open') return true;
  }
  return false;
}

function openAncestor({ parent }: HoldRecord): HoldRecord | undefined {
  let ancestor = parent;
  while (ancestor?.state === 'closed') ancestor = ancestor.parent;
  return ancestor;
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
    const turns = (parent.turns ??= new Set());
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
      if (parent.state === 'open' && !parent.enter(protocol.half)) return;
      leave();
      resolve(parent.state === 'open');
    };
    const timer =
      until === Infinity
        ? undefined
        : clock.setTimer(until, () => fail(new LockTimeoutError(protocol.name, patience.waitTime)));
    const longWait = clock.clock.setTimer(LONG_WAIT_MS, () =>
      warnLongWait(protocol.name, protocol.key, terms.site, parent.site),
    );
    const unwatch = signal && onAbort(signal, () => fail(new LockAbortedError(protocol.name, signal.reason)));
    turns.add(wake);
  });
}

async function acquireForContext(runtime: LockRuntime, acquisition: Acquisition, context: LockContext): Promise<Hold> {
  const { protocol } = acquisition;
  const { holds, acquiring } = holdsOf(context);
  const identity = lockIdentity(runtime, protocol);
  if (acquiring.has(identity)) throw new ConcurrentContextError(protocol.name, context.id);
  acquiring.add(identity);
  try {
    const parent = innermostHold(runtime, protocol, context);
    const hold = await (parent === undefined
      ? acquireOutermost(runtime, acquisition)
      : acquireInside(runtime, acquisition, Hold.recordOf(parent)));
    holds.set(identity, [...(holds.get(identity) ?? []), hold]);
    Hold.recordOf(hold).forget = () => forget(holds, identity, hold);
    return hold;
  } finally {
    acquiring.delete(identity);
  }
}

function forget(holds: Map<string, Hold[]>, identity: string, hold: Hold): void {
  const others = (holds.get(identity) ?? []).filter((other) => other !== hold);
  if (others.length > 0) holds.set(identity, others);
  else holds.delete(identity);
}

const lockIdentity = (runtime: LockRuntime, protocol: LockProtocol): string => `${runtime.clientId} ${protocol.key}`;
