// How do I get permits back from a process that died with them?
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'holdfast';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
await using client = createClient({ url: redis.url });

const seats = client.getPermitExpirableSemaphore('example:seats');
await seats.trySetPermits(2);

// Each permit has an id and, here, a lease. This one is never released.
const lost = await seats.acquire(300);
console.log(`id: ${lost.length} hex digits, free: ${await seats.availablePermits()}`);

{
  await using permit = await seats.acquirePermit({ leaseTime: 10_000 });
  console.log(`valid for more than 9 s: ${permit.validFor() > 9_000}`);
  // The work ends before the permit does.
  await pause(10, undefined, { signal: AbortSignal.timeout(permit.validFor()) });
}
console.log(`free after the block: ${await seats.availablePermits()}`);

const both = await seats.acquireMany(2, 10_000); // waits for the end of the lost permit's lease
console.log(`both: ${both.length}`);
console.log(`the lost one is given back: ${await seats.tryRelease(lost)}`);
await seats.release(both);
