// How do I start long-lived workers, if the code that starts them may itself be inside a lock?
import { setTimeout as pause } from 'node:timers/promises';
import { createClient, lockContext } from 'holdfast';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
await using client = createClient({ url: redis.url });

const jobs = ['ann', 'ann', 'bob', 'ann', 'bob', 'cat'].map((customer, id) => ({ id, customer }));
const inside = new Map<string, number>();
let most = 0;
let mostOfOneCustomer = 0;

/** Takes jobs until there are none. Jobs of one customer run one after the other, in all processes. */
async function work(): Promise<void> {
  for (let job = jobs.shift(); job !== undefined; job = jobs.shift()) {
    const { customer } = job;
    const lock = client.getLock(`example:customer:${customer}`);
    await lock.lock();
    try {
      const now = (inside.get(customer) ?? 0) + 1;
      inside.set(customer, now);
      mostOfOneCustomer = Math.max(mostOfOneCustomer, now);
      most = Math.max(
        most,
        [...inside.values()].reduce((sum, count) => sum + count),
      );
      await pause(50);
      inside.set(customer, now - 1);
    } finally {
      await lock.unlock();
    }
  }
}

const setUp = client.getLock('example:set-up');
const pool = await setUp.withLock(() => {
  // Code that is started inside a hold is inside it. The pool outlives the set-up, so it starts outside, like a new
  // thread.
  const workers = lockContext.run(() => {
    console.log(`in lockContext.run: ${setUp.currentHold() ? 'inside' : 'outside'} the hold of the set-up`);
    return Array.from({ length: 3 }, () => work());
  });
  console.log(`around it: ${setUp.currentHold() ? 'inside' : 'outside'}`);
  return { workers };
});
await Promise.all(pool.workers);

console.log(`jobs at once: ${most}, of one customer: ${mostOfOneCustomer}`);
