/* The tracing channels, as every kind of lock publishes to them. */
import { holdChannel } from '../diagnostics/channels.js';
import { subjectOf, type TracedSubject } from '../diagnostics/reports.js';
import { HoldTrace, traceAcquire } from '../diagnostics/traces.js';
import type { Hold } from '../holding/hold.js';
import { innermostHold, type HoldOwner } from '../holding/innermost-hold.js';
import { runBody } from '../ownership/flow.js';
import type { LockContext } from '../ownership/lock-context.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import type { LockCall, LockSettle } from './lock-call.js';

/** A lock as the channels name it, and whether the caller or the context is inside a hold of it. */
export type TracedLock = TracedSubject & { readonly nested: boolean };

export function tracedSingle(
  client: HoldOwner & { readonly clientId: string },
  protocol: LockProtocol,
  context: LockContext | undefined,
): TracedLock {
  const nested = innermostHold(client, protocol, context) !== undefined;
  return { ...subjectOf(protocol, client.clientId), nested };
}

/** Traces an acquisition. `hasBody`: the section is a function, so `runTraced` begins the trace of the hold. */
export function takeTraced(
  lock: TracedLock,
  { waitTime, leaseTime }: LockCall,
  settle: LockSettle,
  hasBody: boolean,
  take: (settle: LockSettle) => void,
): void {
  const opened = (hold: Hold): void => {
    if (!hasBody && holdChannel.hasSubscribers) holdTrace(lock, hold).begin();
  };
  traceAcquire({ ...lock, waitTime, leaseTime }, settle, ({ grant }) => grant, take, opened);
}

/** Traces a hold, and runs its section in the stores of the channel. */
export function runTraced<H extends Hold, T>(lock: TracedLock, hold: H, fn: (hold: H) => T): T {
  return holdTrace(lock, hold).run(() => runBody(hold, fn));
}

function holdTrace({ name, group, kind, mode, clientId }: TracedLock, hold: Hold): HoldTrace {
  const { owner, holdCount } = hold.grant;
  const trace = new HoldTrace({ name, group, kind, mode, clientId }, { owner, holdCount });
  hold.tracedBy(trace);
  return trace;
}
