// What changes in my code if I move from redlock to this package?
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'holdfast';
import { Redis } from 'ioredis';
import Redlock from 'redlock';
import { openRedis } from './support/redis.js';

await using server = await openRedis();
const redis = new Redis(server.url);

const redlock = new Redlock([redis], { retryCount: -1 });
// The client duplicates the connection and never closes the original.
await using client = createClient({ redis });

// The two packages do not see each other's locks (redlock stores a string, Holdfast a hash). Change all users of a name
// at the same time, or use new names.
const charge = { redlock: 'example:redlock:charge', holdfast: 'example:holdfast:charge' };

// 1. Acquire and release.
{
  const lock = await redlock.acquire([charge.redlock], 5_000);
  await lock.release();
  console.log('redlock   acquire, release');
}
{
  const hold = await client.getLock(charge.holdfast).acquire({ leaseTime: 5_000 });
  await hold.release();
  console.log('holdfast  acquire, release');
}

// 2. A lease that is renewed until the work ends, with a signal for a loss.
await redlock.using([charge.redlock], 1_000, async (signal) => {
  await pause(100, undefined, { signal });
  console.log('redlock   using');
});
await client.getLock(charge.holdfast).withLock(async ({ signal }) => {
  await pause(100, undefined, { signal });
  console.log('holdfast  withLock');
});

// 3. Waiting. redlock polls, every 200 ms by default. Here the release wakes the waiter.
async function handOff(take: () => Promise<{ release(): Promise<unknown> }>): Promise<number> {
  let freed = 0;
  const holder = async (): Promise<void> => {
    const lock = await take();
    await pause(450);
    freed = performance.now();
    await lock.release();
  };
  const waiter = async (): Promise<number> => {
    const lock = await take();
    const late = performance.now() - freed;
    await lock.release();
    return late;
  };
  const [, late] = await Promise.all([holder(), waiter()]);
  return late;
}
const ways = {
  redlock: () => redlock.acquire([charge.redlock], 5_000),
  holdfast: () => client.getLock(charge.holdfast).acquire({ leaseTime: 5_000 }),
};
console.log(`redlock   inside ${(await handOff(ways.redlock)).toFixed(1)} ms after the release`);
console.log(`holdfast  inside ${(await handOff(ways.holdfast)).toFixed(1)} ms after the release`);

// 4. Nesting. With redlock a function that holds the lock must not call one that acquires it: it would wait for itself.
const impatient = new Redlock([redis], { retryCount: 0 });
const outer = await impatient.acquire([charge.redlock], 5_000);
const inner = await impatient.acquire([charge.redlock], 5_000).then(
  () => 'entered',
  () => 'refused',
);
await outer.release();
console.log(`redlock   nested: ${inner}`);
const lock = client.getLock(charge.holdfast);
await lock.withLock(() =>
  lock.withLock(async () => console.log(`holdfast  nested: entered, ${await countOf()} holds`)),
);

async function countOf(): Promise<number> {
  const { owners } = await client.inspect(charge.holdfast);
  return owners[0]?.holdCount ?? 0;
}

await redis.quit();
