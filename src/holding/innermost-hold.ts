/* Finds the hold of a lock that the calling code, or a context, is inside of. */
import { LockUpgradeError } from '../errors.js';
import { currentHolds, innermostOf, type FlowHold } from '../ownership/flow.js';
import { Section, type Sections } from '../ownership/sections.js';
import { allHoldsUnder, holdsUnder, type LockContext } from '../ownership/lock-context.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import type { HoldRecord } from './hold-record.js';
import { SingleHold } from './single-hold.js';
import type { TenureServices } from './tenure.js';

/** The client that a hold belongs to. */
export interface HoldOwner {
  readonly clientId: string;
  readonly tenures: TenureServices;
}

/** A client, as far as it decides which calls it still serves. */
export interface ServingClient {
  readonly client: { readonly closed: boolean; readonly draining: boolean };
  readonly tenures: TenureServices;
  readonly sections: Sections;
}

/** A call: the holds that its code is inside of, and its context. */
export interface CallPlace {
  readonly around: readonly FlowHold[];
  readonly context: LockContext | undefined;
}

const notClosed = (record: HoldRecord): boolean => !record.isClosed;

/** Returns the innermost hold of this lock around the calling code, or of the context. The hold may be lost. */
export function innermostHold(
  client: HoldOwner,
  protocol: LockProtocol,
  context?: LockContext,
  accepts: (record: HoldRecord, protocol: LockProtocol) => boolean = notClosed,
): SingleHold | undefined {
  return innermostOf(holdsAround(client, protocol, context), (hold): hold is SingleHold => {
    if (!isOfKey(client, protocol, hold)) return false;
    const record = SingleHold.recordOf(hold);
    return record.holds(protocol) && accepts(record, protocol);
  });
}

function holdsAround(client: HoldOwner, protocol: LockProtocol, context: LockContext | undefined): readonly FlowHold[] {
  return context === undefined ? currentHolds() : holdsUnder(context, lockIdentity(client, protocol));
}

export const lockIdentity = ({ clientId }: HoldOwner, { key }: LockProtocol): string => `${clientId} ${key}`;

function isOfKey({ tenures }: HoldOwner, { key }: LockProtocol, hold: FlowHold): hold is SingleHold {
  if (!(hold instanceof SingleHold)) return false;
  const tenure = SingleHold.tenureOf(hold);
  return tenure.services === tenures && tenure.protocol.key === key;
}

/**
 * Refuses a call that would cause a deadlock:
 *
 * - The flow is inside a hold of another family, and inside no hold that the call could re-enter. The call would wait
 *   for itself.
 * - The call asks for some of the values that its flow holds, and for further values. The call would wait for a flow
 *   that may wait for it.
 *
 * A call for values of which its flow holds none is a stranger.
 */
export function checkHoldsAround(client: HoldOwner, protocol: LockProtocol, context: LockContext | undefined): void {
  const { family, lockedValues, name } = protocol;
  const holds = holdsAround(client, protocol, context);
  if (holds.length === 0) return;
  const around = innermostOf(holds, (hold): hold is SingleHold => {
    if (!isOfKey(client, protocol, hold)) return false;
    const record = SingleHold.recordOf(hold);
    const { isClosed, protocol: held } = record;
    if (isClosed) return false;
    if (held.family !== family) return true;
    return lockedValues !== undefined && held.lockedValues?.overlaps(lockedValues) === true && !record.holds(protocol);
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
  SingleHold.tenureOf(around).lease.check();
  record.throwIfLost();
  throw new LockUpgradeError(
    name,
    `this flow holds it as another kind of lock (${held}), and would wait for itself; release that hold first, or ` +
      'use one kind of lock for one name',
  );
}

/**
 * Whether the client serves the call. A client that drains still serves calls from inside an open hold of any of its locks,
 * and from inside a section of permits. Such a section may need the call in order to end.
 */
export function serves(client: ServingClient, { around, context }: CallPlace): boolean {
  const { closed, draining } = client.client;
  if (!draining || closed) return !closed;
  const isOpen = (hold: FlowHold): hold is FlowHold => hold.open && isOf(client, hold);
  return (
    innermostOf(around, isOpen) !== undefined ||
    (context !== undefined && innermostOf(allHoldsUnder(context), isOpen) !== undefined)
  );
}

const isOf = ({ tenures, sections }: ServingClient, hold: FlowHold): boolean =>
  hold instanceof SingleHold
    ? SingleHold.tenureOf(hold).services === tenures
    : hold instanceof Section && hold.sections === sections;
