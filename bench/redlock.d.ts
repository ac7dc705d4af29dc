/** What the bench uses of redlock 5 beta: its `exports` leave its own types out. */
declare module 'redlock' {
  import type { Redis } from 'ioredis';

  export interface Lock {
    release(): Promise<unknown>;
  }

  export default class Redlock {
    constructor(clients: Iterable<Redis>, settings?: { retryCount?: number });
    acquire(resources: string[], duration: number): Promise<Lock>;
    using<T>(resources: string[], duration: number, routine: (signal: AbortSignal) => Promise<T>): Promise<T>;
  }
}
