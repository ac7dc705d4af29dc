// What happens when my lease ends before my work does?
import { setTimeout as pause } from 'node:timers/promises';
import { createClient, LockLostError } from 'holdfast';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
await using client = createClient({ url: redis.url });
await using elsewhere = createClient({ url: redis.url });

client.events.on('leaseLost', ({ lockName, reason }) => console.log(`event: leaseLost ${lockName} (${reason})`));

const lock = client.getLock('example:ledger');
let ledger = 'empty';

async function slowWork(): Promise<void> {
  await lock.lock(300); // the watchdog does not renew a hold with a lease: it ends after 300 ms
  const hold = lock.currentHold()!;
  hold.signal.addEventListener('abort', () => console.log('signal: aborted'), { once: true });
  try {
    console.log(`valid for ${Math.round(hold.validFor())} ms`);
    await pause(500);
    console.log(`valid for ${hold.validFor()} ms`);
    // Another owner may be inside by now: check before each important step.
    if (!hold.signal.aborted) ledger = 'written by the one that was too slow';
  } finally {
    await lock.unlock().catch((error: unknown) => {
      if (!(error instanceof LockLostError)) throw error;
      console.log(`unlock: ${error.code}`);
    });
  }
}

async function next(): Promise<void> {
  await elsewhere.getLock(lock.name).withLock(() => {
    ledger = 'written by the next one';
  });
}

const slow = slowWork();
await pause(100); // the first flow is inside, and the next one has to wait
await next();
await slow;
console.log(`ledger: ${ledger}`);
