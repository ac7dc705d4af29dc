import type { LockLostError } from '../errors.js';
import type { EventSource } from '../events.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import type { HoldRecord } from './hold-record.js';
import { countOpen } from './left-holds.js';

/** The tenure, as its events name it. */
interface EventfulTenure {
  readonly services: { readonly events: EventSource };
  readonly protocol: LockProtocol;
  readonly owner: string;
  readonly holds: readonly HoldRecord[];
}

/*
 * The client emits two events for each hold that its caller gets: `acquired`, and then either `released` or
 * `leaseLost`. `told` of the record says which came last. A hold that its caller does not get causes no event.
 */

/** The caller gets the hold. The hold may already be lost. */
export function tellAcquired(
  { services, protocol, owner, holds }: EventfulTenure,
  hold: HoldRecord,
  handedOff = false,
): void {
  const { events } = services;
  hold.told = 'acquired';
  if (events.heard('acquired')) {
    events.emit('acquired', { lockName: protocol.name, owner, holdCount: countOpen(holds), handedOff });
  }
}

/** The hold was released. `holdCount`: number of open holds that its owner has left. */
export function tellReleased({ services, protocol, owner }: EventfulTenure, hold: HoldRecord, holdCount: number): void {
  if (hold.told !== 'acquired') return;
  hold.told = 'ended';
  const { events } = services;
  if (events.heard('released')) events.emit('released', { lockName: protocol.name, owner, holdCount });
}

/** The hold was lost. Its release may have found the loss. */
export function tellLoss({ services, protocol, owner }: EventfulTenure, hold: HoldRecord, loss: LockLostError): void {
  if (hold.told !== 'acquired') return;
  hold.told = 'ended';
  const { reason, cause } = loss;
  services.events.emit('leaseLost', { lockName: protocol.name, owner, reason, cause });
}
