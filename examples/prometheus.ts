// How do I see in Prometheus how long calls wait for locks, and which locks were lost?
import { Registry } from 'prom-client';
import { createClient, lockName } from 'holdfast';
import { collectMetrics } from 'holdfast/prometheus';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
await using client = createClient({ url: redis.url });
const register = new Registry();
const stop = collectMetrics({ client, register });

// All orders have the group `example:order:{}`. A time series for each order would be too many.
const order = (id: number) => client.getLock(lockName`example:order:${id}`);

for (const id of [1, 2, 3]) await order(id).withLock(() => undefined);
const hold = await order(4).acquire();
console.log(`held now: ${await valueOf('holdfast_holding')}`);
await hold.release();
console.log(`sections of orders: ${await valueOf('holdfast_hold_seconds', 'count')}`);
stop();

/** The sum of a metric over its labels. */
async function valueOf(name: string, part = ''): Promise<number> {
  const metric = await register.getSingleMetric(name)!.get();
  const values = metric.values as { value: number; metricName?: string; labels: { group?: string } }[];
  return values
    .filter(({ metricName = name }) => metricName === [name, part].filter(Boolean).join('_'))
    .reduce((sum, { value }) => sum + value, 0);
}
