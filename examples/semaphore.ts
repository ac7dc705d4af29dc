// How do I let no more than a few at once use a service?
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'holdfast';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
await using client = createClient({ url: redis.url });

const slots = client.getSemaphore('example:slots');
console.log(`made: ${await slots.trySetPermits(3)}`); // once: later calls get false and use the existing permits

let inside = 0;
let most = 0;
async function callService(): Promise<void> {
  await slots.withPermits(async () => {
    most = Math.max(most, (inside += 1));
    await pause(20);
    inside -= 1;
  });
}

await Promise.all(Array.from({ length: 10 }, callService));
console.log(`at once: ${most}`);

{
  await using permits = await slots.acquirePermits({ permits: 2, waitTime: 1_000 }); // released at the end of the block
  console.log(`taken: ${permits.permits}`);
}

await slots.acquire(2); // permits have no owner: any process may release them
console.log(`two more: ${await slots.tryAcquire(2, 100)}`);
await slots.release(2);
console.log(`free: ${await slots.availablePermits()}`);
