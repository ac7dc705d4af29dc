// How do I wait for a lock, but not for ever, and hold it for a limited time?
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'holdfast';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
await using client = createClient({ url: redis.url });

const lock = client.getLock('example:report');

async function writeReport(who: string, waitTime: number, takes: number): Promise<void> {
  const asked = performance.now();
  const leaseTime = 10_000;
  // As in Redisson: the wait time and the lease, both in milliseconds.
  if (!(await lock.tryLock(waitTime, leaseTime))) {
    console.log(`${who}: busy, gave up after ${Math.round(performance.now() - asked)} ms`);
    return;
  }
  try {
    console.log(`${who}: got it, its lease ends in ${await lock.remainTimeToLive()} ms`);
    await pause(takes);
  } finally {
    await lock.unlock();
  }
}

await Promise.all([
  writeReport('first', 0, 1_500), // 0: one try
  writeReport('impatient', 700, 0),
  writeReport('patient', 5_000, 0), // woken by the unlock of the first flow, long before its 5 s have passed
]);
