import { failedBySplit } from '../redis/server-error.js';
import type { Renewal, RenewalItem, RenewalScript } from '../protocols/lock-protocol.js';

/** Returns the renewal of one item. If Redis refused it because a slot is moving, the client renews key by key. */
export async function orByKey(script: RenewalScript, item: RenewalItem, renewal: Renewal): Promise<Renewal> {
  return failedBySplit(renewal.error) && script.renewByKey !== undefined ? script.renewByKey(item) : renewal;
}
