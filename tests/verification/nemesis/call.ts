import type { Hold, LockContext } from 'holdfast';
import type { Load } from './load.js';
import { partHolds, type Target } from './target.js';

/** Where a call is made. */
export interface Inside {
  readonly target: Target;
  readonly hold: Hold;
  readonly depth: number;
  readonly context: LockContext | undefined;
}

/** One acquiring call, recorded for each of its parts. */
export class Call {
  readonly signal: AbortSignal | undefined;
  readonly #ids: readonly string[];
  #abort: NodeJS.Timeout | undefined;

  constructor(
    private readonly load: Load,
    private readonly target: Target,
    private readonly around: Inside | undefined,
    waitTime: number,
    readonly leaseTime: number | undefined,
    abortAfterMs: number | undefined,
  ) {
    if (abortAfterMs !== undefined) {
      const controller = new AbortController();
      this.signal = controller.signal;
      this.#abort = setTimeout(() => controller.abort(), abortAfterMs);
    }
    const { recorder, options } = load;
    const { parts, joint } = target;
    // Inside a hold it may have to let the request before it end first.
    const { keep, release } = options.hot;
    // A single try comes after the release of a kept lock, and after a release in the background.
    const releases = waitTime === 0 && (keep > 0 || release === 'background') ? parts.length : 0;
    const deadlines = (around ? 2 : 1) + releases;
    const settlesWithin = waitTime === Infinity ? undefined : waitTime + deadlines * options.commandTimeout;
    this.#ids = parts.map(({ name }) => recorder.invoked(name, settlesWithin, leaseTime, joint));
  }

  granted(hold: Hold): void {
    clearTimeout(this.#abort);
    const { target, around, load } = this;
    const holds = partHolds(target, hold);
    const above = around && partHolds(around.target, around.hold);
    target.parts.forEach(({ name, shared }, at) => {
      load.recorder.granted(this.#ids[at]!, holds.get(name)!, { parent: above?.get(name), shared });
    });
  }

  recordRelease(hold: Hold, release: () => Promise<void>): Promise<void> {
    return this.load.recorder.recordRelease(hold, release, partHolds(this.target, hold).values());
  }

  /** For a hold that the library releases. */
  watchRelease(hold: Hold): void {
    this.load.recorder.watchRelease(hold, partHolds(this.target, hold).values());
  }

  released(hold: Hold, error?: unknown): void {
    for (const part of partHolds(this.target, hold).values()) this.load.recorder.released(part, error);
  }

  refused(reason: unknown): void {
    clearTimeout(this.#abort);
    for (const id of this.#ids) this.load.recorder.refused(id, reason);
    this.load.count(this.load.refused, reason);
  }
}
