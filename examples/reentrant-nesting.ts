// May a function that holds a lock call another one that takes the same lock?
import { createClient } from 'holdfast';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
await using client = createClient({ url: redis.url });

const lock = client.getLock('example:account:7');
let balance = 100;

/** Safe on its own: it acquires the lock. Inside a hold of that lock, it re-enters. */
async function deposit(amount: number): Promise<void> {
  await lock.lock();
  try {
    console.log(`deposit(${amount}): hold count ${await lock.getHoldCount()}`);
    const seen = balance;
    await new Promise((resolve) => setTimeout(resolve, 20));
    balance = seen + amount;
  } finally {
    await lock.unlock();
  }
}

async function depositTwice(amount: number): Promise<void> {
  await lock.lock();
  try {
    console.log(`depositTwice(${amount}): hold count ${await lock.getHoldCount()}`);
    await deposit(amount);
    // Branches of one hold take turns: neither overwrites the work of the other.
    await Promise.all([deposit(amount), deposit(amount)]);
  } finally {
    await lock.unlock();
  }
}

// Two flows are strangers to each other: one waits for the last unlock of the other.
await Promise.all([depositTwice(10), depositTwice(1)]);

console.log(`balance: ${balance}`);
console.log(`locked afterwards: ${await lock.isLocked()}`);
