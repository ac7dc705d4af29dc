/** The pages of one inspector together cause at most this number of commands a second, however many pages are open. */
const COMMANDS_PER_SECOND = 18;
const SLOT_MS = 1_000 / COMMANDS_PER_SECOND;

interface Request {
  readonly commands: number;
  readonly grant: () => void;
  readonly refuse: (reason: Error) => void;
}

/**
 * The time slots in which the commands of all pages are sent, first come, first served. A slot begins when the one before
 * was used, so that a late timer lets no commands pile up.
 */
export class Budget {
  readonly #queue: Request[] = [];
  #freeAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #stopped: Error | undefined;

  /**
   * Resolves when the next command may be sent. With `commands`, all of these may then be sent together: the slots
   * before and after stay empty for them.
   */
  take(commands = 1): Promise<void> {
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped);
    return new Promise((grant, refuse) => {
      this.#queue.push({ commands, grant, refuse });
      this.#schedule();
    });
  }

  start(): void {
    this.#stopped = undefined;
  }

  /** Rejects the requests that wait for a slot, and all others until the next `start()`. */
  stop(reason: Error): void {
    this.#stopped = reason;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const { refuse } of this.#queue.splice(0)) refuse(reason);
  }

  #schedule(): void {
    const [next] = this.#queue;
    if (next === undefined || this.#timer !== undefined) return;
    const now = performance.now();
    const at = Math.max(now, this.#freeAt) + (next.commands - 1) * SLOT_MS;
    this.#timer = setTimeout(() => this.#grant(), at - now);
  }

  #grant(): void {
    this.#timer = undefined;
    const next = this.#queue.shift();
    if (next === undefined) return;
    this.#freeAt = performance.now() + next.commands * SLOT_MS;
    next.grant();
    this.#schedule();
  }
}
