import { LockLostError, type LossReason } from '../errors.js';
import type { HoldRecord } from './hold-record.js';
import type { Tenure } from './tenure.js';

/* What the listeners of a client are told of a tenure. */

export const lossOf = ({ protocol, owner }: Tenure, reason: LossReason, cause?: unknown): LockLostError =>
  new LockLostError(protocol.name, owner, reason, cause === undefined ? undefined : { cause });

/*
 * Each hold that its caller gets is told once as acquired, and once as released or lost, in this order: `told` of its
 * record says which came last. What a caller does not get is not told at all.
 */

/** The caller gets the hold. It may have been lost on the way. */
export function tellAcquired(hold: HoldRecord, handedOff = false): void {
  const { runtime, protocol, owner, holds } = hold.tenure;
  hold.told = 'acquired';
  if (runtime.events.heard('acquired')) {
    runtime.events.emit('acquired', { lockName: protocol.name, owner, holdCount: holds.length, handedOff });
  }
}

/** The hold was released. `holdCount`: what its owner has left. */
export function tellReleased(hold: HoldRecord, holdCount: number): void {
  if (hold.told !== 'acquired') return;
  hold.told = 'ended';
  const { runtime, protocol, owner } = hold.tenure;
  if (runtime.events.heard('released')) {
    runtime.events.emit('released', { lockName: protocol.name, owner, holdCount });
  }
}

/** The hold was lost, before its release or noticed by that. */
export function tellLoss(hold: HoldRecord, loss: LockLostError): void {
  if (hold.told !== 'acquired') return;
  hold.told = 'ended';
  const { runtime, protocol, owner } = hold.tenure;
  const { reason, cause } = loss;
  runtime.events.emit('leaseLost', { lockName: protocol.name, owner, reason, cause });
}
