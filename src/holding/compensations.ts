import type { LeaseClock } from '../clock.js';
import { RedisUnavailableError, RefusedError, type LockError } from '../errors.js';

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

/** What the end of a request depends on. */
export interface RequestTiming {
  readonly clock: LeaseClock;
  readonly options: { readonly commandTimeout: number };
}

/** Monotonic ms by which a lease has ended that a request sent by `now` asks for, whichever of its attempts sets it. */
export const latestEnd = ({ clock, options }: RequestTiming, leaseMs: number, now = clock.clock.monotonic()): number =>
  now + options.commandTimeout + leaseMs;

/** The error of a release that goes on in the background, as its caller is told it. */
export const releaseGoesOn = (error: LockError): LockError =>
  error instanceof RedisUnavailableError
    ? new RedisUnavailableError(error.message, 'unknown', { cause: error.cause })
    : error;

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

/** Gives back, in the background, what nobody owns. Each goes on until it is answered or its last lease has ended. */
export class Compensations {
  readonly #open = new Map<Compensation, Promise<void>>();
  readonly #pausing = new Set<() => void>();
  #hurried = false;
  #closed = false;

  constructor(private readonly clock: LeaseClock) {}

  get size(): number {
    return this.#open.size;
  }

  /** Resolves when it is done with. */
  add(compensation: Compensation): Promise<void> {
    const run = this.#run(compensation).finally(() => this.#open.delete(compensation));
    this.#open.set(compensation, run);
    return run;
  }

  async #run({ send, notBefore, until }: Compensation): Promise<void> {
    const { clock } = this.clock;
    while (clock.monotonic() <= notBefore && !this.#closed) await this.#pause(notBefore - clock.monotonic() + 1);
    for (let pauseMs = FIRST_PAUSE_MS; !this.#closed; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      const request = await send().done;
      if (request.error === undefined || clock.monotonic() >= until) return;
      // close() does not wait for a permission: Redis would refuse the next one, too.
      if (this.#hurried && request.error instanceof RefusedError) return;
      await this.#pause(this.#hurried ? FIRST_PAUSE_MS : pauseMs);
    }
  }

  /** The client closes: each is sent once more without a long pause, and ends even if Redis refuses it. */
  hurry(): void {
    this.#hurried = true;
    for (const wake of [...this.#pausing]) wake();
  }

  /** Resolves when all are done with. */
  async whenDone(): Promise<void> {
    while (this.#open.size > 0) await Promise.all(this.#open.values());
  }

  /** Sends nothing any more. */
  close(): void {
    this.#closed = true;
    for (const wake of [...this.#pausing]) wake();
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
