import { Notice } from '../connections/attempt.js';
import type { Operation } from '../scripts/script.js';
import type { CommandRoutes } from '../topologies/topology.js';
import { channelOf, type RequestArgs } from './command-args.js';

/**
 * After ASK, the script ran and published at the node that imports the slot. The waiters are subscribed at the node that
 * still owns the slot, so they did not receive the message. The client publishes it there.
 */
export function wakeAtOwner<Reply>(
  operation: Operation<readonly string[], RequestArgs, Reply>,
  keys: readonly string[],
  args: RequestArgs,
  routes: CommandRoutes,
  reply: Reply,
): void {
  const payload = operation.publishedPayload?.(reply);
  const channel = channelOf(args, routes.publish);
  if (payload === undefined || channel === undefined || routes.publish !== 'SPUBLISH') return;
  const owner = routes.connectionFor(keys[0] as string, false);
  if (owner?.ready) owner.send('spublish', [channel, payload], new Notice(owner), false);
}
