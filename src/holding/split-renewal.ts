import { failedBySplit } from '../redis/server-error.js';
import type { Renewal, RenewalItem, RenewalScript } from '../protocols/lock-protocol.js';

/** What the renewal of one item has come to, key by key if Redis refused it because a slot is moving. */
export async function orByKey(script: RenewalScript, item: RenewalItem, renewal: Renewal): Promise<Renewal> {
  return failedBySplit(renewal.error) && script.renewByKey !== undefined ? script.renewByKey(item) : renewal;
}
