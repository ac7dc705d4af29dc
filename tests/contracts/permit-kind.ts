import type { LockClient } from '../../src/client/create-client.js';

/** The argument of a release: a number of permits, or their ids. */
export type Taken = number | readonly string[];

/** A number of permits under one name, whatever it takes to name those that were taken. */
export interface Permits {
  trySet(permits: number): Promise<boolean>;
  add(permits: number): Promise<void>;
  free(): Promise<number>;
  /** `null`: there were not enough within `waitTime`. */
  tryTake(permits: number, waitTime?: number, signal?: AbortSignal): Promise<Taken | null>;
  take(permits: number, options?: { waitTime?: number; signal?: AbortSignal }): Promise<Taken>;
  give(taken: Taken): Promise<void>;
  /** The form that releases at the end of a function. */
  within<T>(fn: () => T | PromiseLike<T>, options?: { permits?: number; waitTime?: number }): Promise<T>;
}

export interface PermitKind {
  make(client: LockClient, name: string): Permits;
  /** The same, for a worker process. */
  spec(name: string): { factory: string; name: string };
  /** The key that only requests have which acquire, release or add permits. */
  key(name: string): string;
}

export const semaphoreKind: PermitKind = {
  make(client, name) {
    const semaphore = client.getSemaphore(name);
    return {
      trySet: (permits) => semaphore.trySetPermits(permits),
      add: (permits) => semaphore.addPermits(permits),
      free: () => semaphore.availablePermits(),
      tryTake: async (permits, waitTime, signal) =>
        (await semaphore.tryAcquire(permits, waitTime, { signal })) ? permits : null,
      take: async (permits, options) => {
        await semaphore.acquire(permits, options);
        return permits;
      },
      give: (taken) => semaphore.release(taken as number),
      within: (fn, options) => (options === undefined ? semaphore.withPermits(fn) : semaphore.withPermits(options, fn)),
    };
  },
  spec: (name) => ({ factory: 'getSemaphore', name }),
  key: (name) => `holdfast_requests:{${name}}`,
};

export const expirableKind: PermitKind = {
  make(client, name) {
    const semaphore = client.getPermitExpirableSemaphore(name);
    return {
      trySet: (permits) => semaphore.trySetPermits(permits),
      add: (permits) => semaphore.addPermits(permits),
      free: () => semaphore.availablePermits(),
      tryTake: async (permits, waitTime, signal) => {
        const ids = await semaphore.tryAcquireMany(permits, waitTime, undefined, { signal });
        return ids.length === permits ? ids : null;
      },
      take: (permits, options) => semaphore.acquireMany(permits, undefined, options),
      give: (taken) => semaphore.release(taken as readonly string[]),
      within: (fn, options) => (options === undefined ? semaphore.withPermit(fn) : semaphore.withPermit(options, fn)),
    };
  },
  spec: (name) => ({ factory: 'getPermitExpirableSemaphore', name }),
  key: (name) => `{${name}}:timeout`,
};
