import type { LeaseClock } from '../clock.js';
import type { LockError } from '../errors.js';
import type { LockRuntime } from './lock-runtime.js';

/** A request under way, of which only the end matters. */
export interface SentRequest {
  readonly done: Promise<{ readonly error: LockError | undefined }>;
}

/** A request that has to be made sure of: somebody was told that nothing is held, or may be. */
export interface Compensation {
  send(): SentRequest;
  /** Monotonic ms up to which a request that creates or moves the field may still run: not to be overtaken by it. */
  readonly notBefore: number;
  /** Monotonic ms at which the last lease that any request can have set is over. Redis knows of no jump of our clock. */
  readonly until: number;
}

/** By then a lease that is asked for now has ended, whichever attempt sets it. */
export const latestEnd = ({ clock, options }: Pick<LockRuntime, 'clock' | 'options'>, leaseMs: number): number =>
  clock.clock.monotonic() + options.commandTimeout + leaseMs;

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

/** Gives back, in the background, what nobody owns. Each goes on until it is answered or its last lease has ended. */
export class Compensations {
  readonly #open = new Set<Compensation>();
  readonly #pausing = new Set<() => void>();
  #closed = false;

  constructor(private readonly clock: LeaseClock) {}

  get size(): number {
    return this.#open.size;
  }

  /** Resolves when it is done with. */
  add(compensation: Compensation): Promise<void> {
    this.#open.add(compensation);
    return this.#run(compensation).finally(() => this.#open.delete(compensation));
  }

  async #run({ send, notBefore, until }: Compensation): Promise<void> {
    await this.#pause(notBefore - this.clock.clock.monotonic() + 1);
    for (let pauseMs = FIRST_PAUSE_MS; !this.#closed; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      const request = await send().done;
      if (request.error === undefined || this.clock.clock.monotonic() >= until) return;
      await this.#pause(pauseMs);
    }
  }

  /** Sends each once more, now, and starts no other attempt. Resolves when these are settled. */
  async close(): Promise<void> {
    this.#closed = true;
    const last = [...this.#open].map(({ send }) => send().done);
    for (const wake of [...this.#pausing]) wake();
    await Promise.all(last);
  }

  async #pause(ms: number): Promise<void> {
    if (ms <= 0 || this.#closed) return;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        timer.cancel();
        this.#pausing.delete(wake);
        resolve();
      };
      const timer = this.clock.clock.setTimer(ms, wake);
      this.#pausing.add(wake);
    });
  }
}
