/** An owner that is no name of the recording. */
const OURS = /^[\da-f-]{36}:\d+$/;
const isPermit = (value: unknown): value is string => typeof value === 'string' && /^<id\d+>$/.test(value);

/**
 * What owners and permits of ours are called in the recording: each outermost hold has an owner of its own here, while a
 * thread keeps its id.
 */
export class Roles {
  /** Ours -> recorded. */
  readonly #roles = new Map<string, string>();
  /** Who waits and was not yet seen in a queue. */
  readonly #queueing: string[] = [];

  static of(client: string, thread: string): string {
    return `<${client}>:${/^\d+$/.test(thread) ? thread : `<${thread}>`}`;
  }

  plays(owner: string, role: string): void {
    this.#roles.set(owner, role);
  }

  /** Will be in a queue, after those of whom that was said before. */
  queues(role: string): void {
    this.#queueing.push(role);
  }

  seenInQueue(owners: readonly string[]): void {
    for (const owner of owners) {
      if (OURS.test(owner) && !this.#roles.has(owner)) this.#roles.set(owner, this.#queueing.shift() ?? owner);
    }
  }

  /** What was granted stands for what was granted in the recording. */
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

  /** One that was never granted is one that nobody knows. */
  ourPermits(arg: unknown): unknown {
    if (Array.isArray(arg)) return arg.map((each) => this.ourPermits(each));
    if (!isPermit(arg)) return arg;
    return [...this.#roles].find(([, id]) => id === arg)?.[0] ?? '0'.repeat(32);
  }

  recorded(text: string): string {
    return [...this.#roles].reduce((replaced, [owner, role]) => replaced.replaceAll(owner, role), text);
  }
}
