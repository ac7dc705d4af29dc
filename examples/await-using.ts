// Can a lock give itself back at the end of the block, however the block ends?
import { createClient, LockTimeoutError } from 'holdfast';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
await using client = createClient({ url: redis.url });

const lock = client.getLock('example:invoice:12');

async function pay(amount: number): Promise<string> {
  await using _hold = await lock.acquire({ waitTime: 5_000 });
  if (amount === 0) return 'nothing to pay';
  if (amount < 0) throw new RangeError('a negative amount');
  return `paid ${amount}`;
}

for (const amount of [20, 0, -1]) {
  console.log(await pay(amount).catch((error: unknown) => String(error)));
  console.log(`  locked afterwards: ${await lock.isLocked()}`);
}

// `acquire` rejects if the lock stays busy; `tryAcquire` resolves with null.
await using holder = createClient({ url: redis.url });
await using _hold = await holder.getLock(lock.name).acquire();
try {
  await using _busy = await lock.acquire({ waitTime: 100 });
} catch (error) {
  if (!(error instanceof LockTimeoutError)) throw error;
  console.log(`${error.code}: ${error.message}`);
}
console.log(`tryAcquire: ${(await lock.tryAcquire()) === null ? 'null' : 'a hold'}`);
