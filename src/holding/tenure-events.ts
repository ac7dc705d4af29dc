import type { LeaseClock } from '../clock.js';
import type { Reports } from '../diagnostics/reports.js';
import { LockLostError, type ClientClosedError, type LossReason } from '../errors.js';
import type { HoldRecord } from './hold-record.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import { countOpen, hasCaller, isLeft } from './left-holds.js';

/** The tenure, as its events name it. */
interface EventfulTenure {
  readonly services: { readonly reports: Reports; readonly clock: LeaseClock };
  readonly owner: string;
  readonly handedOff: boolean;
  readonly holds: readonly HoldRecord[];
}

/** The tenure, as it loses its holds. */
interface LosingTenure extends EventfulTenure {
  holds: HoldRecord[];
}

/*
 * The client emits two events for each hold that its caller gets: `acquired`, and then either `released` or
 * `leaseLost`. `told` of the record says which came last. A hold that its caller does not get causes no event.
 */

/** The caller gets the hold. The hold may already be lost. `askedAt`: monotonic time, in ms, of the call. */
export function tellAcquired(tenure: EventfulTenure, hold: HoldRecord, askedAt: number): void {
  const { services, owner, holds } = tenure;
  hold.told = 'acquired';
  const holdCount = holds.length === 1 ? 1 : countOpen(holds);
  services.reports.acquired(hold.protocol, owner, holdCount, isHandedOff(tenure, hold), askedAt);
}

/** Whether the owner got the lock by a hand-over. A nested hold is acquired by a request of its own. */
export const isHandedOff = ({ handedOff }: { readonly handedOff: boolean }, { parent }: HoldRecord): boolean =>
  handedOff && parent === undefined;

/** The hold was released. `holdCount`: number of open holds that its owner has left. */
export function tellReleased({ services, owner }: EventfulTenure, hold: HoldRecord, holdCount: number): void {
  if (hold.told !== 'acquired') return;
  hold.told = 'ended';
  services.reports.released(hold.protocol, owner, holdCount, hold.openedAt, services.clock);
}

export const lossOf = (
  { protocol, owner }: { readonly protocol: LockProtocol; readonly owner: string },
  reason: LossReason,
  cause?: unknown,
): LockLostError => new LockLostError(protocol.name, owner, reason, cause === undefined ? undefined : { cause });

/** Marks all holds as lost before it reports any loss, because a listener of one hold may use another hold. */
export function loseHolds(tenure: LosingTenure, loss: LockLostError | ClientClosedError): void {
  const lost = tenure.holds.filter(hasCaller);
  tenure.holds = tenure.holds.filter(isLeft);
  for (const hold of lost) hold.lose(loss);
  for (const hold of lost) {
    hold.tellLost();
    if (loss instanceof LockLostError) tellLoss(tenure, hold, loss);
  }
}

/** The hold was lost. Its release may have found the loss. */
export function tellLoss({ services, owner }: EventfulTenure, hold: HoldRecord, loss: LockLostError): void {
  if (hold.told !== 'acquired') return;
  hold.told = 'ended';
  const { reason, cause } = loss;
  const held = services.clock.now() - hold.openedAt;
  services.reports.report('leaseLost', hold.protocol, { owner, reason, held, cause }, loss);
}
