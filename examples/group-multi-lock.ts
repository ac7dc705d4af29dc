// How do I lock hundreds of ids at once, without a command for each?
import { createClient } from 'holdfast';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
await using client = createClient({ url: redis.url });

const ids = Array.from({ length: 500 }, (_, i) => `order:${i}`);

// One script locks all ids or none: no order of the ids can cause a deadlock.
await client.getMultiLock('example:orders', ids).withLock(async () => {
  console.log('500 orders locked');

  // Other owners can hold other ids at the same time.
  const beside = client.getMultiLock('example:orders', ['order:700']);
  console.log('order:700 is free:', await beside.tryLock());
  await beside.unlock();

  // Inside the hold, a call for some of the ids re-enters.
  await client.getMultiLock('example:orders', ['order:7', 'order:8']).withLock(() => console.log('order:7 re-entered'));
});

console.log('locked afterwards:', await client.getMultiLock('example:orders', ids).isLocked());
