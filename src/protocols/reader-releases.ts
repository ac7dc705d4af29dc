import type { LockError } from '../errors.js';
import { runOutside } from '../ownership/flow.js';
import type { Doubt } from '../redis/requests/doubt.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { ReleaseReply } from '../redis/scripts/replies.js';
import type { SentRelease } from './lock-protocol.js';

/** The read side of one lock, as the releases use it. */
interface ReadSide {
  readonly key: string;
  /** Whether a request would be written now. */
  readonly isReady: boolean;
  releaseReaders(owners: readonly string[]): ScriptRequest<ReleaseReply[]>;
}

/** Maximum number of owners in one request. The server does nothing else while the script runs. */
const MAX_OWNERS = 1_000;

/** The releases of one request, before and after it is sent. */
class Together {
  readonly owners: string[] = [];
  readonly #waiting: (() => void)[] = [];
  readonly #unsent: ((request: ScriptRequest<ReleaseReply[]>) => void)[] = [];
  request: ScriptRequest<ReleaseReply[]> | undefined;

  constructor(readonly side: ReadSide) {}

  send(): void {
    this.request = this.side.releaseReaders(this.owners);
    for (const sent of this.#unsent) sent(this.request);
    this.request.onDone(() => {
      for (const done of this.#waiting) done();
    });
  }

  /** Resolves with the request when it is sent. */
  get sent(): Promise<ScriptRequest<ReleaseReply[]>> {
    return new Promise((resolve) => {
      if (this.request === undefined) this.#unsent.push(resolve);
      else resolve(this.request);
    });
  }

  /** Calls `fn` when Redis has answered. */
  whenDone(fn: () => void): void {
    this.#waiting.push(fn);
  }
}

/** The release of one reader: its part of a request. */
class ReaderRelease implements SentRelease {
  #onDone: (() => void) | undefined;
  #isDone = false;

  constructor(
    private readonly together: Together,
    private readonly at: number,
  ) {
    together.whenDone(() => {
      this.#isDone = true;
      this.#onDone?.();
    });
  }

  get reply(): ReleaseReply | undefined {
    return this.together.request?.reply?.[this.at];
  }

  get error(): LockError | undefined {
    return this.together.request?.error;
  }

  get doubt(): Doubt | undefined {
    return this.together.request?.doubt;
  }

  get isWritten(): boolean {
    return this.together.request?.isWritten ?? this.together.side.isReady;
  }

  async whenFlushed(): Promise<boolean> {
    const request = await this.together.sent;
    return request.whenFlushed();
  }

  get done(): Promise<this> {
    return new Promise((resolve) => this.onDone(() => resolve(this)));
  }

  onDone(fn: () => void): void {
    if (this.#isDone) fn();
    else this.#onDone = fn;
  }
}

/**
 * Releases readers. One request releases all readers of a lock whose holds end in the same turn of the event loop. The
 * script looks at the readers that stay, so one request for each reader would cost the server O(n^2).
 */
export class ReaderReleases {
  /** The releases of this turn that are not sent, by key. */
  readonly #next = new Map<string, Together>();

  release(side: ReadSide, owner: string): SentRelease {
    let together = this.#next.get(side.key);
    if (together === undefined) {
      together = new Together(side);
      this.#next.set(side.key, together);
      // Timers that fire together run before `setImmediate`. The request serves several callers, so it runs outside the
      // flow of each caller.
      runOutside(() => setImmediate(() => this.#send(together)));
    }
    const release = new ReaderRelease(together, together.owners.push(owner) - 1);
    if (together.owners.length === MAX_OWNERS) this.#send(together);
    return release;
  }

  /** Sends the releases of a lock before a request that has to follow them. */
  flush(key: string): void {
    const together = this.#next.get(key);
    if (together !== undefined) this.#send(together);
  }

  #send(together: Together | undefined): void {
    if (together === undefined || together.request !== undefined) return;
    const { key } = together.side;
    if (this.#next.get(key) === together) this.#next.delete(key);
    together.send();
  }
}
