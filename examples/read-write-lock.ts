// How do many read at once while nobody writes?
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'holdfast';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
await using client = createClient({ url: redis.url });

const prices = client.getReadWriteLock('example:prices');
let price = 10;
let readers = 0;
let most = 0;

async function read(): Promise<number> {
  return prices.readLock().withLock(async () => {
    most = Math.max(most, (readers += 1));
    const seen = price;
    await pause(50);
    readers -= 1;
    return seen;
  });
}

async function raise(): Promise<void> {
  await prices.writeLock().withLock(async () => {
    const before = price;
    await pause(20);
    price = before + 1;
    // A writer may read, and continue to read after it has released the write lock. The other order is refused.
    await read();
  });
}

await Promise.all([read(), read(), read()]);
console.log(`readers at once: ${most}`);
await Promise.all([raise(), raise(), read()]);
console.log(`price: ${price}`);
await prices.readLock().withLock(async () => {
  const refused: unknown = await prices
    .writeLock()
    .tryLock(1_000)
    .catch((error: unknown) => error);
  console.log(`to write while reading: ${(refused as { code: string }).code}`);
});
