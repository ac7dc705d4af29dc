/** What the demo's processes say to each other. Times are ms on CLOCK_MONOTONIC, the same for all of them. */
export const stamp = (): number => Number(process.hrtime.bigint()) / 1e6;

export interface WorkerArguments {
  readonly name: string;
  readonly redisUrl: string;
  readonly orders: readonly string[];
  readonly flows: readonly string[];
  readonly seed: string;
  /** Whether it does long jobs, whose lease the watchdog renews. */
  readonly longJobs: boolean;
}

export type Command =
  | { readonly do: 'start' | 'stop' }
  /** Take the order's lock, nest another hold in it, and wait for the end. */
  | { readonly do: 'hold'; readonly order: string; readonly leaseTime: number }
  /** Take the order's lock and block the event loop. */
  | { readonly do: 'block'; readonly order: string; readonly leaseTime: number; readonly blockFor: number };

export interface Answer {
  readonly answers: number;
  readonly value: number;
}

/** A hold as its own code sees it. */
interface Place {
  readonly order: string;
  readonly flow: string;
  readonly owner: string;
  readonly at: number;
}

/** Answered by the parent, and only then does the worker go on: what it does next comes after in every process. */
export type Question =
  /** The code is inside; by its own account the lock is held until `until`. */
  | ({ readonly ask: 'enter'; readonly until: number } & Place)
  | ({ readonly ask: 'leave' } & Place)
  | { readonly ask: 'read'; readonly order: string }
  | { readonly ask: 'write'; readonly order: string; readonly value: number }
  | { readonly ask: 'block'; readonly order: string; readonly owner: string; readonly at: number };

export type Report =
  | { readonly say: 'ready' }
  | { readonly say: 'wants' | 'gave up'; readonly order: string; readonly flow: string; readonly at: number }
  /** The last `unlock()`: when it was called, and the code that it rejected with. */
  | { readonly say: 'unlocked'; readonly owner: string; readonly at: number; readonly code?: string }
  | { readonly say: 'in place'; readonly owner: string }
  | { readonly say: 'unblocked'; readonly at: number }
  /** The signal of a hold has aborted. */
  | { readonly say: 'signalled'; readonly owner: string; readonly at: number }
  /** A renewal has moved the end of what the hold believes. */
  | { readonly say: 'prolonged'; readonly owner: string; readonly until: number }
  | { readonly say: 'failed'; readonly message: string }
  | { readonly say: 'done' }
  | ({ readonly say: 'event'; readonly order: string; readonly at: number } & ClientEvent);

/** What a client's `events` tell, as far as the timeline shows it. */
export type ClientEvent =
  | { readonly event: 'acquired'; readonly owner: string; readonly holdCount: number; readonly handedOff: boolean }
  | { readonly event: 'released'; readonly owner: string; readonly holdCount: number }
  | { readonly event: 'renewed'; readonly owner: string }
  | { readonly event: 'leaseLost'; readonly owner: string; readonly reason: string }
  | { readonly event: 'waiting' };

export type FromWorker = Report | (Question & { readonly id: number });
