/*
 * Requests without an owner field take effect at most once through lanes: for each lane of a client the server keeps
 * "<sequence>:<answer>" of the last request it carried. A repeat finds its own sequence and gets the stored answer, an
 * older one changes nothing, and cancelling a request that has not arrived stores "cancelled" in its place.
 * tests/verification/model/Lanes.tla is this file and the scripts with a sequence.
 */
import type { LeaseClock } from '../clock.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import { releaseGoesOn, type Compensations, type SentRequest } from '../holding/compensations.js';

export interface Lane {
  readonly key: string;
  readonly number: number;
  /** Of the request that it carries now; grows for ever, so that a lane used anew is never behind what it carried. */
  readonly sequence: number;
}

/** The server forgets a lane an hour after its last use: from then on nothing can be said about its request. */
const LANE_MS = 3_600_000;

/** The lane numbers of one requests key. A freed number is used again, so the hash in Redis stays as small as it can. */
interface LaneNumbers {
  readonly inUse: Set<number>;
  readonly free: number[];
}

export class Lanes {
  /** requests key -> its numbers. */
  readonly #numbers = new Map<string, LaneNumbers>();
  #sequence = 0;

  constructor(
    private readonly clock: LeaseClock,
    private readonly compensations: Compensations,
  ) {}

  get size(): number {
    let taken = 0;
    for (const { inUse } of this.#numbers.values()) taken += inUse.size;
    return taken;
  }

  take(key: string): Lane {
    let numbers = this.#numbers.get(key);
    if (numbers === undefined) this.#numbers.set(key, (numbers = { inUse: new Set(), free: [] }));
    // Without a free number all that exist are in use, so the next one is their count.
    const number = numbers.free.pop() ?? numbers.inUse.size;
    numbers.inUse.add(number);
    this.#sequence += 1;
    return { key, number, sequence: this.#sequence };
  }

  free({ key, number }: Lane): void {
    const numbers = this.#numbers.get(key);
    if (numbers?.inUse.delete(number) !== true) return;
    numbers.free.push(number);
    if (numbers.inUse.size === 0) this.#numbers.delete(key);
  }

  /** Repeats `send` in the background until it is answered; the lane stays taken until then. */
  settle(lane: Lane, send: () => SentRequest): Promise<void> {
    return this.compensations
      .add({ send, notBefore: 0, until: this.clock.clock.monotonic() + LANE_MS })
      .finally(() => this.free(lane));
  }

  /**
   * One request in a lane of its own. If its outcome stays unknown `settle` goes out until it is answered. A request
   * that is to be done in any case is repeated until it is done, refused or not.
   */
  async once<Reply>(
    key: string,
    send: (lane: Lane) => ScriptRequest<Reply>,
    settle: 'repeat' | ((lane: Lane) => SentRequest),
  ): Promise<Reply> {
    const lane = this.take(key);
    const { error, reply, inDoubt } = await send(lane).done;
    if (error === undefined) {
      this.free(lane);
      return reply as Reply;
    }
    if (settle === 'repeat') {
      void this.settle(lane, () => send(lane));
      throw releaseGoesOn(error);
    }
    if (inDoubt) void this.settle(lane, () => settle(lane));
    else this.free(lane);
    throw error;
  }
}
