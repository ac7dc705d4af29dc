// How do I move money between two accounts without a deadlock?
import { createClient } from 'holdfast';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
await using client = createClient({ url: redis.url });

const balances = new Map([
  ['ann', 100],
  ['bob', 100],
]);
const account = (who: string) => client.getLock(`example:account:${who}`);

async function transfer(from: string, to: string, amount: number): Promise<void> {
  // Both or none. Every call for these two acquires them in the same order, in whatever order they are given.
  await client.getMultiLock(account(from), account(to)).withLock({ waitTime: 5_000 }, async () => {
    const [left, right] = [balances.get(from)!, balances.get(to)!];
    await new Promise((resolve) => setTimeout(resolve, 5));
    balances.set(from, left - amount);
    balances.set(to, right + amount);
  });
}

await Promise.all([...Array(5).keys()].flatMap((i) => [transfer('ann', 'bob', i), transfer('bob', 'ann', 2 * i)]));
console.log(`ann ${balances.get('ann')}, bob ${balances.get('bob')}`);
