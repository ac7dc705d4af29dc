import type { LockClient } from '../../../src/client.js';
import type { PermitExpirableSemaphore } from '../../../src/primitives/permit-expirable-semaphore.js';

export const SHARED_KINDS: ReadonlySet<string> = new Set(['semaphore', 'expirable', 'latch']);

/** In Java's order: counts first, then times before their unit, or a Duration. */
function timed(args: readonly unknown[]): { counts: number[]; times: number[] } {
  const unit = args.indexOf('MILLISECONDS');
  if (unit >= 0) {
    const numbers = args.slice(0, unit).map(Number);
    return { counts: numbers.slice(0, -1), times: numbers.slice(-1) };
  }
  const counts = args.filter((arg): arg is number => typeof arg === 'number');
  const durations = args.filter((arg): arg is string => typeof arg === 'string' && arg.startsWith('PT'));
  return { counts, times: durations.map((text) => Math.round(Number(/^PT([\d.]+)S$/.exec(text)?.[1]) * 1_000)) };
}

/** The same call of ours on what nobody owns. */
export async function callShared(
  client: LockClient,
  kind: string,
  name: string,
  method: string,
  args: readonly unknown[],
  signal: AbortSignal,
): Promise<unknown> {
  const { counts, times } = timed(args);
  const call = `${kind}.${method}`;
  if (kind === 'latch') {
    const latch = client.getCountDownLatch(name);
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
        throw new Error(`no such call here: ${call}`);
    }
  }
  if (kind === 'expirable') return callExpirable(client.getPermitExpirableSemaphore(name), method, args, signal);
  const semaphore = client.getSemaphore(name);
  switch (method) {
    case 'acquire':
      return semaphore.acquire(counts[0], { signal });
    case 'tryAcquire':
      return semaphore.tryAcquire(counts[0], times[0], { signal });
    case 'release':
      return semaphore.release(counts[0]);
    case 'releaseIfExists':
      return semaphore.releaseIfExists(counts[0]);
    case 'availablePermits':
      return semaphore.availablePermits();
    case 'drainPermits':
      return semaphore.drainPermits();
    case 'trySetPermits':
      return semaphore.trySetPermits(counts[0]!, times[0]);
    case 'addPermits':
      return semaphore.addPermits(counts[0]!);
    default:
      throw new Error(`no such call here: ${call}`);
  }
}

/** Java tells the forms for one permit and for many by whether a number comes first, and by how many times follow. */
async function callExpirable(
  semaphore: PermitExpirableSemaphore,
  method: string,
  args: readonly unknown[],
  signal: AbortSignal,
): Promise<unknown> {
  const unit = args.indexOf('MILLISECONDS');
  const numbers = (unit < 0 ? args : args.slice(0, unit)).map(Number);
  const [first] = args;
  const ids = first as string | readonly string[];
  switch (method) {
    case 'acquire':
      if (args.length === 0) return semaphore.acquire(undefined, { signal });
      if (unit === 1) return semaphore.acquire(numbers[0], { signal });
      return semaphore.acquireMany(numbers[0]!, numbers[1], { signal });
    case 'tryAcquire':
      if (args.length === 0) return semaphore.tryAcquire();
      if (unit < 0) return semaphore.tryAcquireMany(numbers[0]!);
      if (unit === 3) return semaphore.tryAcquireMany(numbers[0]!, numbers[1], numbers[2], { signal });
      return semaphore.tryAcquire(numbers[0], numbers[1], { signal });
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
      return semaphore.trySetPermits(numbers[0]!);
    case 'setPermits':
      return semaphore.setPermits(numbers[0]!);
    case 'addPermits':
      return semaphore.addPermits(numbers[0]!);
    default:
      throw new Error(`no such call here: expirable.${method}`);
  }
}
