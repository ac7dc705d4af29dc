/** An owner that is no name of the recording. */
const OURS = /^[\da-f-]{36}:\d+$/;
const isPermit = (value: unknown): value is string => typeof value === 'string' && /^<id\d+>$/.test(value);

/**
 * Maps owners and permits of Holdfast to their names in the recording. In Holdfast, each outermost hold has its own
 * owner, while a thread of Redisson keeps its id.
 */
export class Roles {
  /** Name in Holdfast -> recorded name. */
  readonly #roles = new Map<string, string>();
  /** The waiters that were not yet seen in a queue. */
  readonly #queueing: string[] = [];

  static of(client: string, thread: string): string {
    return `<${client}>:${/^\d+$/.test(thread) ? thread : `<${thread}>`}`;
  }

  plays(owner: string, role: string): void {
    this.#roles.set(owner, role);
  }

  /** Announces a waiter that will be in a queue behind the waiters announced before. */
  queues(role: string): void {
    this.#queueing.push(role);
  }

  seenInQueue(owners: readonly string[]): void {
    for (const owner of owners) {
      if (OURS.test(owner) && !this.#roles.has(owner)) this.#roles.set(owner, this.#queueing.shift() ?? owner);
    }
  }

  /** Maps a grant to the grant in the recording. */
  learnPermits(recorded: unknown, ours: unknown): void {
    const granted = [ours].flat();
    [recorded].flat().forEach((id, at) => {
      const own = granted[at];
      if (isPermit(id) && typeof own === 'string') this.#roles.set(own, id);
    });
  }

  recordedPermits(ours: unknown): unknown {
    if (Array.isArray(ours)) return ours.map((each) => this.recordedPermits(each));
    return typeof ours === 'string' ? (this.#roles.get(ours) ?? ours) : ours;
  }

  /** An unknown name stands for a permit that was never granted. */
  ourPermits(arg: unknown): unknown {
    if (Array.isArray(arg)) return arg.map((each) => this.ourPermits(each));
    if (!isPermit(arg)) return arg;
    return [...this.#roles].find(([, id]) => id === arg)?.[0] ?? '0'.repeat(32);
  }

  recorded(text: string): string {
    return [...this.#roles].reduce((replaced, [owner, role]) => replaced.replaceAll(owner, role), text);
  }
}
