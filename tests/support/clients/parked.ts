import type { LockClient } from '../../../src/client/create-client.js';
import { lockChannel } from '../../../src/redis/keys.js';
import { acquire } from '../../../src/redis/scripts/lock.js';
import { answered } from './lock-clients.js';
import type { FaultProxy } from '../proxy/proxy.js';
import { until } from '../time/until.js';

/** Waits until the waiters are subscribed and the head has got a busy reply after that. */
export async function parked({ log }: FaultProxy, client: LockClient, name: string): Promise<void> {
  const channel = lockChannel(name);
  await until(() => {
    const subscribed = log.findIndex((each) => each.name === 'SUBSCRIBE' && each.args.includes(channel));
    if (subscribed < 0) return false;
    const since = log.slice(subscribed).filter(({ args }) => args[0] === acquire.script!.sha && args.includes(name));
    return since.some(({ answeredAt }) => answeredAt !== undefined);
  }, 'they are subscribed, and the first has looked since');
  await answered(client); // from the proxy to the client it is still a way, and no longer one than this
}
