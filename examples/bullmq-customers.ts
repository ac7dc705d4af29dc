// How do jobs of BullMQ run one at a time for each customer?
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { DelayedError, Queue, Worker, type Job } from 'bullmq';
import { createClient } from 'holdfast';
import { Redis } from 'ioredis';
import { openRedis } from './support/redis.js';

interface Invoice {
  readonly customer: string;
}

const RETRY_MS = 20;
const CUSTOMERS = ['ann', 'ann', 'bob', 'ann', 'bob', 'ann'];

await using redis = await openRedis();
await using client = createClient({ url: redis.url });
const connection = new Redis(redis.url, { maxRetriesPerRequest: null });
const name = `example-invoices-${process.pid}`;

const inside = new Map<string, number>();
let mostOfOneCustomer = 0;
let most = 0;

/** The worker keeps its place for other customers: a job whose customer is busy goes back to the queue. */
async function invoice(job: Job<Invoice>, token?: string): Promise<void> {
  const { customer } = job.data;
  await using hold = await client.getLock(`example:customer:${customer}`).tryAcquire();
  if (hold === null) {
    await job.moveToDelayed(Date.now() + RETRY_MS, token);
    throw new DelayedError(); // tells BullMQ that the job was moved: it counts as no attempt
  }
  inside.set(customer, (inside.get(customer) ?? 0) + 1);
  mostOfOneCustomer = Math.max(mostOfOneCustomer, inside.get(customer)!);
  most = Math.max(
    most,
    [...inside.values()].reduce((sum, count) => sum + count),
  );
  // A lost lock stops the job, and BullMQ runs it again.
  await pause(50, undefined, { signal: hold.signal });
  inside.set(customer, inside.get(customer)! - 1);
}

const queue = new Queue<Invoice>(name, { connection });
await queue.addBulk(CUSTOMERS.map((customer) => ({ name: 'invoice', data: { customer } })));
// Two workers of three jobs each, as in two processes.
const workers = [1, 2].map(() => new Worker<Invoice>(name, invoice, { connection, concurrency: 3 }));
let completed = 0;
for (const worker of workers) worker.on('completed', () => (completed += 1));
while (completed < CUSTOMERS.length) {
  await Promise.race(workers.map((worker) => once(worker as never, 'completed')));
}
await Promise.all(workers.map((worker) => worker.close()));
console.log(`jobs completed: ${completed}, failed: ${await queue.getFailedCount()}`);
console.log(`at once: ${most}, of one customer: ${mostOfOneCustomer}`);
await queue.obliterate();
await queue.close();
await connection.quit();
