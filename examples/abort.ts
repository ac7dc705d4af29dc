// How do I stop a call that waits for a lock, for instance because its client has gone?
import { createClient, LockAbortedError } from 'holdfast';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
await using client = createClient({ url: redis.url });
await using elsewhere = createClient({ url: redis.url });

const lock = client.getLock('example:seat:12A');
const hold = await elsewhere.getLock(lock.name).acquire();

// Every waiting call takes a signal: lock, tryLock, acquire, tryAcquire, withLock.
const request = new AbortController();
setTimeout(() => request.abort(new Error('the browser has gone')), 100);
try {
  await lock.lock({ signal: request.signal });
} catch (error) {
  if (!(error instanceof LockAbortedError)) throw error;
  console.log(`${error.name} (${error.code}), because ${String(error.cause)}`);
}

// Combined signals: the first one that aborts ends the wait. Keep the parts in variables that you use later: on Node.js 20,
// the garbage collector may remove a timeout that only AbortSignal.any() refers to.
const [left, limit] = [new AbortController().signal, AbortSignal.timeout(100)];
const signal = AbortSignal.any([left, limit]);
const outcome = await lock.withLock({ signal }, () => 'inside').catch((error: unknown) => (error as Error).name);
console.log(`with a time limit: ${outcome}, timed out: ${limit.aborted}`);

// The aborted calls leave nothing behind: the released lock stays free.
await hold.release();
console.log(`locked afterwards: ${await lock.isLocked()}`);
