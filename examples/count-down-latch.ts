// How do several processes wait until all have done their part?
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'holdfast';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
await using client = createClient({ url: redis.url });
await using other = createClient({ url: redis.url });

const ready = client.getCountDownLatch('example:ready');
console.log(`closed: ${await ready.trySetCount(3)}`);
console.log(`open within 50 ms: ${await ready.await(50)}`);

async function part(latch: typeof ready, takes: number): Promise<void> {
  await pause(takes);
  await latch.countDown();
}

const waiting = [ready.await(5_000), other.getCountDownLatch(ready.name).await(5_000)];
await Promise.all([part(ready, 10), part(other.getCountDownLatch(ready.name), 20), part(ready, 30)]);
console.log(`both got through: ${(await Promise.all(waiting)).every(Boolean)}`);
console.log(`count: ${await ready.getCount()}`);
