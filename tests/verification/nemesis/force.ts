import type { Lock } from 'holdfast';
import { stamp } from '../../support/history/history-recorder.mjs';
import type { Load } from './load.js';

/** A release names the owners of its time. It may stay pending for this time. */
const LATEST_DELIVERY_MS = 11_000;

/** Frees a lock by force, and records when and whether that happened. */
export async function forceUnlock({ recorder, clients }: Load, name: string, lock: Lock): Promise<void> {
  const from = stamp();
  // The result is unknown if the call fails.
  const freed = await lock.forceUnlock().catch(() => undefined);
  const at = stamp();
  recorder.write({ type: 'forced', from, at, lock: name, client: clients.of(name).id, freed: freed === true });
  recorder.write({ type: 'broken', from, at: freed === undefined ? at + LATEST_DELIVERY_MS : at, locks: [name] });
}
