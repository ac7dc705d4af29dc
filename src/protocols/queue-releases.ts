import type { LockError } from '../errors.js';
import { runOutside } from '../ownership/flow.js';
import type { LockProtocol } from './lock-protocol.js';

interface Request {
  readonly error: LockError | undefined;
}

interface Leaving {
  readonly owner: string;
  sent(done: Promise<Request>): void;
}

/**
 * Maximum number of owners in one request. The server does nothing else while the script runs, and Lua can pass fewer
 * than 8,000 values to one call.
 */
const MAX_OWNERS = 4_000;

/**
 * Releases the places of owners in the queue of a lock. One request releases all owners that leave in the same turn of
 * the event loop. The script walks the whole queue, so one request per owner would cost the server O(n^2).
 */
export class QueueReleases {
  /** The owners that leave in this turn of the event loop, by key. */
  readonly #leaving = new Map<string, Leaving[]>();

  release(protocol: LockProtocol, owner: string): { readonly done: Promise<Request> } {
    const done = new Promise<Request>((sent) => {
      const leaving = this.#leaving.get(protocol.key) ?? this.#nextTurn(protocol);
      leaving.push({ owner, sent });
    });
    return { done };
  }

  #nextTurn(protocol: LockProtocol): Leaving[] {
    const leaving: Leaving[] = [];
    this.#leaving.set(protocol.key, leaving);
    // Timers that fire together and all listeners of one signal run before `setImmediate`. The request serves several
    // callers, so it runs outside the flow of each caller.
    runOutside(() => setImmediate(() => this.#send(protocol, leaving)));
    return leaving;
  }

  #send(protocol: LockProtocol, leaving: Leaving[]): void {
    this.#leaving.delete(protocol.key);
    // Send the last owners first. Otherwise the script would lower the scores of owners that the next request removes.
    while (leaving.length > 0) {
      const together = leaving.splice(-MAX_OWNERS);
      const { done } = protocol.release(together.map(({ owner }) => owner));
      for (const { sent } of together) sent(done);
    }
  }
}
