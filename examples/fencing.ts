// How do I keep a holder that has lost its lock without noticing from doing damage?
import { createClient } from 'holdfast';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
await using client = createClient({ url: redis.url });
await using other = createClient({ url: redis.url });

/** The protected resource. It remembers the largest token that it has seen, and rejects smaller ones. */
class Ledger {
  #seen = 0n;
  readonly lines: string[] = [];

  write(line: string, token: bigint): boolean {
    if (token < this.#seen) return false;
    this.#seen = token;
    this.lines.push(line);
    return true;
  }
}

const ledger = new Ledger();
const lock = client.getFencedLock('example:fencing');

const slow = await lock.acquire({ leaseTime: 200 });
console.log(`slow: token ${slow.token}`);
// The holder stops for longer than its lease: garbage collection, a sleeping machine, a blocked event loop.
await new Promise((resume) => setTimeout(resume, 250));

await other.getFencedLock(lock.name).withLock((hold) => {
  console.log(`next: token ${hold.token}, written: ${ledger.write('by the next one', hold.token)}`);
});
console.log(`slow: written: ${ledger.write('by the slow one', slow.token)}`);
await slow.release().catch((error: unknown) => console.log(`slow: ${(error as { code: string }).code}`));
console.log(`ledger: ${ledger.lines.join(', ')}`);
