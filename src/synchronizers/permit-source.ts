import type { Timer } from '../clock.js';
import { LONG_WAIT_MS } from '../waiting/long-wait.js';
import type { SharedWaiter } from '../waiting/shared-waiter.js';
import * as reads from '../redis/scripts/reads.js';
import { checkPermits, checkSemaphoreOptions } from '../locks/arguments.js';
import type { ProtocolPort } from '../protocols/protocol-port.js';
import { SharedObject, type OwnerlessServices } from './ownerless-object.js';

/** Options of `getSemaphore` and `getPermitExpirableSemaphore`. */
export interface SemaphoreOptions {
  /**
   * The first use of this semaphore by the client sets it up with so many permits, as `trySetPermits` does: unless it
   * exists. Absent: `trySetPermits` has to be called by some client.
   */
  permits?: number | undefined;
}

/** For so many names a client remembers that it has set the semaphore up. */
const MOST_SET_UP = 10_000;

/** What one client knows of the semaphores that it uses. */
class UsedSemaphores {
  readonly setUp = new Map<string, Promise<boolean>>();
  /** Keys for whose permits calls wait. */
  readonly waitedFor = new Map<string, { calls: number; timer: Timer }>();
}

const used = new WeakMap<OwnerlessServices, UsedSemaphores>();
const warned = new Set<string>();

/** A semaphore of either kind: a number of permits that somebody has to set once. */
export abstract class PermitSource extends SharedObject {
  /** @internal What the first use sets it up with. */
  protected readonly declared: number | undefined;

  /** @internal */
  constructor(services: OwnerlessServices, port: ProtocolPort, name: string, options: SemaphoreOptions | undefined) {
    super(services, port, name);
    const { permits } = checkSemaphoreOptions(options);
    this.declared = permits === undefined ? undefined : checkPermits(permits, undefined);
  }

  abstract trySetPermits(permits: number): Promise<boolean>;

  /** @internal Before anything else is sent, where the number of permits is declared. */
  protected setUp(permits: number): Promise<boolean> {
    const { setUp } = this.#used;
    const before = setUp.get(this.key);
    if (before !== undefined) return before;
    const [oldest] = setUp.keys();
    if (setUp.size >= MOST_SET_UP && oldest !== undefined) setUp.delete(oldest);
    const made = this.trySetPermits(permits);
    setUp.set(this.key, made);
    // The next use tries again; this one rejects.
    made.catch(() => setUp.delete(this.key));
    return made;
  }

  get #used(): UsedSemaphores {
    let known = used.get(this.services);
    if (known === undefined) used.set(this.services, (known = new UsedSemaphores()));
    return known;
  }

  /** @internal */
  protected override wait<T>(
    channel: string,
    make: (granted: (value: T) => void, failed: (error: unknown) => void) => SharedWaiter,
  ): Promise<{ readonly value: T } | undefined> {
    return super.wait(channel, (granted, failed) => {
      const waiter = make(granted, failed);
      waiter.watch = this;
      return waiter;
    });
  }

  /** @internal A call stands in line. */
  waitBegins(): void {
    const { waitedFor } = this.#used;
    const known = waitedFor.get(this.key);
    if (known !== undefined) {
      known.calls += 1;
      return;
    }
    const timer = this.services.clock.clock.setTimer(LONG_WAIT_MS, () => void this.#waitedLong());
    waitedFor.set(this.key, { calls: 1, timer });
  }

  /** @internal */
  waitEnds(): void {
    const { waitedFor } = this.#used;
    const known = waitedFor.get(this.key);
    if (known === undefined) return;
    known.calls -= 1;
    if (known.calls > 0) return;
    known.timer.cancel();
    waitedFor.delete(this.key);
  }

  /** A semaphore with no permit left has a key. Without a key there is none, and nothing ends the wait. */
  async #waitedLong(): Promise<void> {
    try {
      if (await this.port.executor.ask(reads.exists, [this.key], [])) return;
      // It was deleted since.
      if (this.declared !== undefined) {
        await this.trySetPermits(this.declared);
        return;
      }
    } catch {
      return;
    }
    if (warned.has(this.key) || !this.#used.waitedFor.has(this.key)) return;
    warned.add(this.key);
    process.emitWarning(
      `waiting ${LONG_WAIT_MS / 1000} s for permits of semaphore "${this.name}", which has not been set up: ` +
        'call trySetPermits(n) once, or ask for it with { permits: n } as its options.',
      { code: 'HOLDFAST_NOT_SET_UP' },
    );
  }
}
