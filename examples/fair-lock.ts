// How do jobs of many processes get the lock in the order in which they asked for it?
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'holdfast';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
// Two clients stand for two processes that do not know each other.
await using here = createClient({ url: redis.url });
await using there = createClient({ url: redis.url });

await Promise.all([here.ready(), there.ready()]);

const NAME = 'example:printer';

async function print(client: typeof here, job: string): Promise<void> {
  await client.getFairLock(NAME).withLock(async () => {
    console.log(`printing ${job}`);
    await pause(100);
  });
}

// With getLock() a process would print several of its own jobs in a row.
const jobs: Promise<void>[] = [];
for (const [client, job] of [
  [here, 'a letter'],
  [there, 'a poster'],
  [here, 'a ticket'],
  [there, 'an invoice'],
] as const) {
  jobs.push(print(client, job));
  await pause(5); // so that the order of arrival is certain
}

const { queue } = await here.inspect(NAME);
console.log(`${queue.length} jobs are in the queue`);
// No call passes the waiters, not even at a moment when the lock is free.
console.log(`may I pass? ${(await there.getFairLock(NAME).tryLock()) ? 'yes' : 'no'}`);
await Promise.all(jobs);
