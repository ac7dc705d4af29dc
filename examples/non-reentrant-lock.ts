// Can a lock tell me that I already hold it, instead of letting me in again?
import { createClient, NonReentrantError } from 'holdfast';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
await using client = createClient({ url: redis.url });

const lock = client.getNonReentrantLock('example:rebuild');

async function rebuild(depth: number): Promise<string> {
  return lock.withLock(async () => {
    // A rebuild that starts another one is a mistake: with getLock() it would go unnoticed.
    return depth === 0 ? 'rebuilt' : rebuild(depth - 1);
  });
}

console.log(await rebuild(0));
try {
  await rebuild(1);
} catch (error) {
  if (!(error instanceof NonReentrantError)) throw error;
  console.log(`${error.code}: "${error.lockName}"`);
}
console.log(`locked afterwards: ${await lock.isLocked()}`);

// The fair variant: in the order of the requests, and also refused to its owner.
const inTurn = client.getNonReentrantFairLock('example:rebuild-in-turn');
await inTurn.withLock(async () => {
  const again = await inTurn.tryLock().catch((error: unknown) => error);
  console.log(`in turn: ${again instanceof NonReentrantError ? 'refused' : 'let in'}`);
});
