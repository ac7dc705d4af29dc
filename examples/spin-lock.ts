// How do I lock where publish and subscribe are not available?
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'holdfast';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
await using client = createClient({ url: redis.url });

// Waiters poll, here after 5, 10, 20, 40, 40, ... ms. A release publishes no message.
const lock = client.getSpinLock('example:spin', { backOff: { initialDelay: 5, maxDelay: 40 } });

let counter = 0;
async function add(): Promise<void> {
  await lock.withLock(async () => {
    const seen = counter;
    await pause(5);
    counter = seen + 1;
  });
}

await Promise.all(Array.from({ length: 10 }, add));
console.log(`counter: ${counter}`);
console.log(`locked afterwards: ${await lock.isLocked()}`);
