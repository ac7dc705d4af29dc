import type { LockClient } from '../../../index.js';
import type { Contended, Own, WaitEdge } from '../contract/messages.js';
import { ownOf, waitEdges } from './own.js';
import type { Session } from './session.js';

const EVERY_MS = 1_000;
/** The page counts times on by itself. After this time, in ms, it gets them again. */
const AGAIN_MS = 5_000;

/** A payload that is the same for all pages. Its version changes when the pages have to get it again. */
class Payload<T> {
  version = 0;
  #value: T | undefined;
  #facts = '';
  #builtAt = -Infinity;
  #changedAt = -Infinity;

  /** `times`: the fields that change with time alone. */
  constructor(
    private readonly build: () => T,
    private readonly times: readonly string[],
  ) {}

  get value(): T {
    const now = performance.now();
    if (this.#value !== undefined && now - this.#builtAt < EVERY_MS) return this.#value;
    this.#builtAt = now;
    this.#value = this.build();
    const facts = JSON.stringify(this.#value, (key, value: unknown) => (this.times.includes(key) ? 0 : value));
    if (facts !== this.#facts || now - this.#changedAt > AGAIN_MS) {
      this.#facts = facts;
      this.#changedAt = now;
      this.version += 1;
    }
    return this.#value;
  }
}

/** The payloads that replace the one before. */
export class SharedPayloads {
  readonly own: Payload<Own>;
  readonly waits: Payload<readonly WaitEdge[]>;
  readonly contended: Payload<readonly Contended[]>;

  constructor(client: LockClient, { overview, table, process, contention }: Session) {
    this.own = new Payload(() => ownOf(client, overview), ['age', 'remaining']);
    this.waits = new Payload(() => waitEdges(table, overview, process), ['age']);
    this.contended = new Payload(() => contention.most(table), ['waitedForMs']);
  }
}
