import type { Clock, MonotonicMs } from '../../clock.js';
import { RefusedError, type LockError } from '../../errors.js';
import { ROLL_REFUSED_MS } from '../../timing.js';
import { wake } from '../scripts/lock.js';
import type { WakeReply } from '../scripts/replies.js';
import { PUBLISH_COMMAND, type Roll } from '../scripts/script.js';

/** The part of the executor that sends the request. */
interface Executor {
  run(
    operation: typeof wake,
    keys: [waiters: string],
    args: [lock: string, publish: string, own: string, most: number],
  ): { readonly done: Promise<{ readonly reply: WakeReply | undefined; readonly error: LockError | undefined }> };
}

/**
 * Wakes parked clients after a script that may have woken nobody: the lock and its roll are at two nodes, because their slot
 * migrates, or the reply of the attempt that freed the lock was lost.
 */
export class Rolls {
  /** The rolls that Redis has refused, with the time until which no request about them is sent, earliest first. */
  readonly #refused = new Map<string, MonotonicMs>();
  readonly #pending = new Set<Promise<void>>();

  constructor(
    private readonly executor: Executor,
    private readonly clock: Clock,
  ) {}

  /** `lock`: its key. */
  wake(lock: string, roll: Roll): void {
    const pending = this.#wake(lock, roll).finally(() => this.#pending.delete(pending));
    this.#pending.add(pending);
  }

  /** Resolves when no such request is pending. */
  async whenDone(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  async #wake(lock: string, { waiters, own, most }: Roll): Promise<void> {
    if (this.#isRefused(waiters)) return;
    const send = () => this.executor.run(wake, [waiters], [lock, PUBLISH_COMMAND, own, most]).done;
    let { reply, error } = await send();
    // The node that the slot leaves has no roll any more, so Redis redirects this one to the other node.
    if (reply === 'elsewhere') ({ reply, error } = await send());
    if (reply === 'refused' || error instanceof RefusedError)
      this.#refused.set(waiters, this.clock.monotonic() + ROLL_REFUSED_MS);
  }

  #isRefused(waiters: string): boolean {
    const now = this.clock.monotonic();
    for (const [refused, until] of this.#refused) {
      if (until > now) break;
      this.#refused.delete(refused);
    }
    return this.#refused.has(waiters);
  }
}
