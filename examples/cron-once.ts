// How does a cron job run once per cluster, although every machine schedules it?
import cron from 'node-cron';
import { createClient, type LockClient } from 'holdfast';
import { openRedis } from './support/redis.js';

/** More than the clocks of two machines differ, and less than the time between two runs. */
const AT_LEAST_MS = 500;
const RUNS = 2;

await using redis = await openRedis();
const runs: number[] = [];
let skipped = 0;

/** The machine that acquires the lock runs the job. The lock stays held for a while, so a slower clock finds it busy. */
async function report(client: LockClient): Promise<void> {
  const hold = await client.getLock('example:nightly-report').tryAcquire();
  if (hold === null) {
    skipped += 1;
    return;
  }
  try {
    runs.push(performance.now());
  } finally {
    await hold.release({ after: AT_LEAST_MS });
  }
}

const machines = [1, 2, 3].map(() => {
  const client = createClient({ url: redis.url });
  const task = cron.schedule('* * * * * *', () => report(client));
  return { client, task };
});
while (runs.length < RUNS) {
  const finished = machines.map(
    ({ task }) => new Promise<void>((resolve) => task.once('execution:finished', () => resolve())),
  );
  await Promise.all(finished);
}
for (const { task } of machines) await task.destroy();
await Promise.all(machines.map(({ client }) => client.close()));

console.log(`runs: ${runs.length}, skipped on other machines: ${skipped}`);
console.log(`at least ${AT_LEAST_MS} ms apart: ${runs[1]! - runs[0]! >= AT_LEAST_MS}`);
