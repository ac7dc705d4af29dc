import type { SentRequest } from '../holding/compensations.js';
import { runOutside } from '../ownership/flow.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';

type Request = Awaited<SentRequest['done']>;

interface Leaving {
  readonly owner: string;
  sent(done: Promise<Request>): void;
}

/** Most owners in one request. The server does nothing else while it runs, and Lua passes on fewer than 8,000 values. */
const MAX_OWNERS = 4_000;

/**
 * Releases the places of owners in the queue of a lock. All owners that leave in the same turn of the event loop go in
 * one request: the script walks along the whole queue, so one request for each would cost the server O(n^2).
 */
export class QueueReleases {
  /** By key, those that leave in this turn. */
  readonly #leaving = new Map<string, Leaving[]>();

  release(protocol: LockProtocol, owner: string): SentRequest {
    const done = new Promise<Request>((sent) => {
      const leaving = this.#leaving.get(protocol.key) ?? this.#nextTurn(protocol);
      leaving.push({ owner, sent });
    });
    return { done };
  }

  #nextTurn(protocol: LockProtocol): Leaving[] {
    const leaving: Leaving[] = [];
    this.#leaving.set(protocol.key, leaving);
    // Timers that fire together and listeners of one signal all run before it. No caller's flow is that of the others.
    runOutside(() => setImmediate(() => this.#send(protocol, leaving)));
    return leaving;
  }

  #send(protocol: LockProtocol, leaving: Leaving[]): void {
    this.#leaving.delete(protocol.key);
    // The last go first: then the script has no scores to lower of owners that the next request removes.
    while (leaving.length > 0) {
      const together = leaving.splice(-MAX_OWNERS);
      const { done } = protocol.release(together.map(({ owner }) => owner));
      for (const { sent } of together) sent(done);
    }
  }
}
