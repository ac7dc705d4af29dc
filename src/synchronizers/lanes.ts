/*
 * Lanes let a request take effect at most once where Redis stores no owner that would identify a repeat. Redis keeps
 * "<sequence>:<reply>" of the last request of each lane of a client:
 * - A repeat finds its own sequence and gets the stored reply.
 * - A request with an older sequence changes nothing.
 * - The cancellation of a request that has not arrived stores "cancelled", so the request changes nothing later.
 * tests/verification/model/Lanes.tla is the model of this file and of the scripts with a sequence.
 */
import type { LeaseClock } from '../clock.js';
import type { Lane } from '../protocols/ownerless-protocol.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import { releaseGoesOn, type Compensations, type SentRequest } from '../holding/compensations.js';
import { LANE_MS } from '../timing.js';

/** The lane numbers of one hash. The client reuses free numbers, which keeps the hash in Redis small. */
interface LaneNumbers {
  readonly inUse: Set<number>;
  readonly free: number[];
}

/** The lanes of one client. */
export class Lanes {
  /** Maps the key of a hash to its lane numbers. */
  readonly #numbers = new Map<string, LaneNumbers>();
  #sequence = 0;

  constructor(
    private readonly clock: LeaseClock,
    private readonly compensations: Compensations,
  ) {}

  /** Number of lanes in use. */
  get size(): number {
    let taken = 0;
    for (const { inUse } of this.#numbers.values()) taken += inUse.size;
    return taken;
  }

  take(key: string): Lane {
    let numbers = this.#numbers.get(key);
    if (numbers === undefined) this.#numbers.set(key, (numbers = { inUse: new Set(), free: [] }));
    // Without a free number, the numbers from 0 to `size - 1` are all in use.
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

  /** Repeats `send` in the background until it succeeds, for at most an hour. The lane stays in use until then. */
  settle(lane: Lane, send: () => SentRequest): Promise<void> {
    return this.compensations
      .add({ send, notBefore: 0, until: this.clock.clock.monotonic() + LANE_MS })
      .finally(() => this.free(lane));
  }

  /**
   * Sends one request in its own lane. `settle` says what happens in the background after a failure:
   * - `'repeat'`: the client repeats the request until it succeeds, whether it was unanswered or refused.
   * - a function: the client sends this cancellation if the outcome of the request is unknown.
   */
  async once<Reply>(
    key: string,
    send: (lane: Lane) => ScriptRequest<Reply>,
    settle: 'repeat' | ((lane: Lane) => SentRequest),
  ): Promise<Reply> {
    const lane = this.take(key);
    const { error, reply, doubt } = await send(lane).done;
    if (error === undefined) {
      this.free(lane);
      return reply as Reply;
    }
    if (settle === 'repeat') {
      void this.settle(lane, () => send(lane));
      throw releaseGoesOn(error);
    }
    if (doubt !== undefined) void this.settle(lane, () => settle(lane));
    else this.free(lane);
    throw error;
  }
}
