/** The pages of one inspector together cause at most this number of commands a second, however many pages are open. */
const COMMANDS_PER_SECOND = 18;
const SLOT_MS = 1_000 / COMMANDS_PER_SECOND;

/** The time slots in which the commands of all pages are sent, first come, first served. */
export class Budget {
  #nextAt = 0;
  #stopped: Error | undefined;
  readonly #timers = new Map<NodeJS.Timeout, (reason: Error) => void>();

  /**
   * Resolves when the next command may be sent. With `commands`, all of these may then be sent together: the slots
   * before and after stay empty for them.
   */
  take(commands = 1): Promise<void> {
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped);
    const now = performance.now();
    const at = Math.max(now, this.#nextAt) + (commands - 1) * SLOT_MS;
    this.#nextAt = at + commands * SLOT_MS;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        resolve();
      }, at - now);
      this.#timers.set(timer, reject);
    });
  }

  start(): void {
    this.#stopped = undefined;
  }

  /** Rejects the requests that wait for a slot, and all others until the next `start()`. */
  stop(reason: Error): void {
    this.#stopped = reason;
    for (const [timer, reject] of this.#timers) {
      clearTimeout(timer);
      reject(reason);
    }
    this.#timers.clear();
  }
}
