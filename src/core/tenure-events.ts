import { LockLostError, type LossReason } from '../errors.js';
import type { HoldRecord } from './hold-record.js';
import type { Tenure } from './tenure.js';

/* What the listeners of a client are told of a tenure. */

export const lossOf = ({ protocol, owner }: Tenure, reason: LossReason, cause?: unknown): LockLostError =>
  new LockLostError(protocol.name, owner, reason, cause === undefined ? undefined : { cause });

export function tellReentered({ runtime: { events }, protocol, owner, holds }: Tenure): void {
  if (!events.heard('acquired')) return;
  events.emit('acquired', { lockName: protocol.name, owner, holdCount: holds.length, handedOff: false });
}

export function tellReleased({ runtime: { events }, protocol, owner }: Tenure, holdCount: number): void {
  if (events.heard('released')) events.emit('released', { lockName: protocol.name, owner, holdCount });
}

export function tellLoss(
  { runtime: { events }, protocol, owner }: Tenure,
  hold: HoldRecord,
  loss: LockLostError,
): void {
  hold.loss ??= loss;
  const { reason, cause } = loss;
  events.emit('leaseLost', { lockName: protocol.name, owner, reason, cause });
}
