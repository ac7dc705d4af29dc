import { Notice } from '../connections/attempt.js';
import type { Operation } from '../scripts/script.js';
import type { CommandRoutes } from '../topologies/topology.js';
import { channelOf, type RequestArgs } from './command-args.js';

/**
 * A request ran at the node that its slot is moving to, and published there. The waiters are subscribed at the node that
 * the slot still belongs to, where the message did not arrive: it is published there as well.
 */
export function wakeAtOwner<Reply>(
  operation: Operation<readonly string[], RequestArgs, Reply>,
  keys: readonly string[],
  args: RequestArgs,
  routes: CommandRoutes,
  reply: Reply,
): void {
  const payload = operation.wakeUp?.(reply);
  const channel = channelOf(args, routes.publish);
  if (payload === undefined || channel === undefined || routes.publish !== 'SPUBLISH') return;
  const owner = routes.connectionFor(keys[0] as string, false);
  if (owner?.ready) owner.send('spublish', [channel, payload], new Notice(owner), false);
}
