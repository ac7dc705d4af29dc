import type { LockClient } from '../../../src/client/create-client.js';
import type { CountDownLatch } from '../../../src/synchronizers/latch.js';
import type { PermitExpirableSemaphore } from '../../../src/synchronizers/expirable-semaphore.js';
import type { Semaphore } from '../../../src/synchronizers/semaphore.js';

type Args = readonly unknown[];

/** The calls of Java on objects without an owner as calls of Holdfast, by kind. Arguments are in Java's order. */
export const SHARED_CALLS: Record<
  string,
  (client: LockClient, name: string, method: string, args: Args, signal: AbortSignal) => Promise<unknown>
> = {
  semaphore: (client, name, method, args, signal) => callSemaphore(client.getSemaphore(name), method, args, signal),
  expirable: (client, name, method, args, signal) =>
    callExpirable(client.getPermitExpirableSemaphore(name), method, args, signal),
  latch: (client, name, method, args, signal) => callLatch(client.getCountDownLatch(name), method, args, signal),
};

/** Durations of both forms in ms, after their other arguments. */
function timed(args: Args): { counts: number[]; times: number[] } {
  const unit = args.indexOf('MILLISECONDS');
  const durations = args.filter((arg): arg is string => typeof arg === 'string' && arg.startsWith('PT'));
  if (durations.length > 0) {
    const counts = args.filter((arg): arg is number => typeof arg === 'number');
    return { counts, times: durations.map((text) => Math.round(Number(/^PT([\d.]+)S$/.exec(text)?.[1]) * 1_000)) };
  }
  if (unit < 0) return { counts: args.map(Number), times: [] };
  const numbers = args.slice(0, unit).map(Number);
  return { counts: numbers.slice(0, -1), times: numbers.slice(-1) };
}

async function callSemaphore(semaphore: Semaphore, method: string, args: Args, signal: AbortSignal): Promise<unknown> {
  const { counts, times } = timed(args);
  const [permits] = counts;
  switch (method) {
    case 'acquire':
      return semaphore.acquire(permits, { signal });
    case 'tryAcquire':
      return semaphore.tryAcquire(permits, times[0], { signal });
    case 'release':
      return semaphore.release(permits);
    case 'releaseIfExists':
      return semaphore.releaseIfExists(permits);
    case 'availablePermits':
      return semaphore.availablePermits();
    case 'drainPermits':
      return semaphore.drainPermits();
    case 'trySetPermits':
      return semaphore.trySetPermits(permits!, times[0]);
    case 'addPermits':
      return semaphore.addPermits(permits!);
    default:
      throw new Error(`no such method here: ${method}`);
  }
}

async function callLatch(latch: CountDownLatch, method: string, args: Args, signal: AbortSignal): Promise<unknown> {
  const { counts, times } = timed(args);
  switch (method) {
    case 'await': {
      const opened = await latch.await(times[0], { signal });
      return times.length === 0 ? undefined : opened;
    }
    case 'countDown':
      return latch.countDown();
    case 'getCount':
      return latch.getCount();
    case 'trySetCount':
      return latch.trySetCount(counts[0]!);
    case 'delete':
      return latch.delete();
    default:
      throw new Error(`no such method here: ${method}`);
  }
}

/** Where a number of permits is given, and a list of them taken, all forms have it first. */
async function callExpirable(
  semaphore: PermitExpirableSemaphore,
  method: string,
  args: Args,
  signal: AbortSignal,
): Promise<unknown> {
  const unit = args.indexOf('MILLISECONDS');
  const times = unit < 0 ? [] : args.slice(0, unit).map(Number);
  const [first] = args;
  const ids = first as string | readonly string[];
  switch (method) {
    case 'acquire':
      if (unit < 0 && args.length > 0) return semaphore.acquireMany(Number(first), undefined, { signal });
      if (times.length === 2) return semaphore.acquireMany(times[0]!, times[1], { signal });
      return semaphore.acquire(times[0], { signal });
    case 'tryAcquire':
      if (unit < 0 && args.length > 0) return semaphore.tryAcquireMany(Number(first), 0, undefined, { signal });
      if (times.length === 3) return semaphore.tryAcquireMany(times[0]!, times[1], times[2], { signal });
      return semaphore.tryAcquire(times[0], times[1], { signal });
    case 'release':
      return semaphore.release(ids);
    case 'tryRelease':
      return semaphore.tryRelease(ids);
    case 'updateLeaseTime':
      return semaphore.updateLeaseTime(String(first), Number(args[1]));
    case 'getLeaseTime':
      return semaphore.getLeaseTime(String(first));
    case 'availablePermits':
      return semaphore.availablePermits();
    case 'acquiredPermits':
      return semaphore.acquiredPermits();
    case 'getPermits':
      return semaphore.getPermits();
    case 'trySetPermits':
      return semaphore.trySetPermits(Number(first));
    case 'setPermits':
      return semaphore.setPermits(Number(first));
    case 'addPermits':
      return semaphore.addPermits(Number(first));
    default:
      throw new Error(`no such method here: ${method}`);
  }
}
