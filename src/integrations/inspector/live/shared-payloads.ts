import type { LockClient } from '../../../index.js';
import type { Contended, Own, WaitEdge } from '../contract/messages.js';
import { ownOf, waitEdges } from './own.js';
import type { Session } from './session.js';

const EVERY_MS = 1_000;
/** The page counts times on by itself. After this time, in ms, it gets them again. */
const AGAIN_MS = 5_000;

/** A payload that is the same for all pages. Its version changes when the pages have to get it again. */
export class Payload {
  version = 0;
  #json: string | undefined;
  #facts = '';
  #builtAt = -Infinity;
  #changedAt = -Infinity;

  /** `times`: the fields that change with time alone. */
  constructor(
    private readonly build: () => object,
    private readonly times: readonly string[],
  ) {}

  /** The payload as JSON. */
  get json(): string {
    const now = performance.now();
    if (this.#json !== undefined && now - this.#builtAt < EVERY_MS) return this.#json;
    this.#builtAt = now;
    const value = this.build();
    this.#json = JSON.stringify(value);
    const facts = JSON.stringify(value, (key, field: unknown) => (this.times.includes(key) ? 0 : field));
    if (facts !== this.#facts || now - this.#changedAt > AGAIN_MS) {
      this.#facts = facts;
      this.#changedAt = now;
      this.version += 1;
    }
    return this.#json;
  }
}

/** The payloads that replace the one before. */
export class SharedPayloads {
  readonly own: Payload;
  readonly waits: Payload;
  readonly contended: Payload;

  constructor(client: LockClient, { overview, ownById, table, process, contention }: Session) {
    this.own = new Payload((): Own => ownOf(client, overview, ownById), ['age', 'remaining']);
    this.waits = new Payload((): readonly WaitEdge[] => waitEdges(table, overview, process), ['age']);
    this.contended = new Payload((): readonly Contended[] => contention.most(table), ['waitedForMs']);
  }
}
