import type { Timer } from '../clock.js';
import type { LockError } from '../errors.js';
import type { Subscriber } from '../redis/subscriber.js';
import { LockEntry } from './lock-entry.js';
import type { LockRuntime } from './lock-runtime.js';

/** A subscription outlives its last waiter by this much: a hot lock must not subscribe once per section. */
const LINGER_MS = 500;

/** channel -> entry, for as long as anybody of this client holds, waits or listens there. */
export class EntryRegistry {
  readonly #entries = new Map<string, LockEntry>();
  readonly #attended = new Set<LockEntry>();
  readonly #lingering = new Map<LockEntry, Timer>();

  constructor(
    private readonly runtime: () => LockRuntime,
    private readonly subscriberFor: (channel: string) => Subscriber,
  ) {}

  entry(channel: string): LockEntry {
    let entry = this.#entries.get(channel);
    if (entry === undefined) {
      entry = new LockEntry(this.runtime(), this, this.subscriberFor(channel), channel);
      this.#entries.set(channel, entry);
    }
    return entry;
  }

  find(channel: string): LockEntry | undefined {
    return this.#entries.get(channel);
  }

  get size(): number {
    return this.#entries.size;
  }

  [Symbol.iterator](): Iterator<LockEntry> {
    return this.#entries.values();
  }

  /** Whether somebody waits at the entry: only then is the subscription connection watched. */
  attend(entry: LockEntry, attended: boolean): void {
    if (attended === this.#attended.has(entry)) return;
    if (attended) this.#attended.add(entry);
    else this.#attended.delete(entry);
    this.subscriberFor(entry.channel).attend(this.#attended.size > 0);
  }

  dropIfIdle(entry: LockEntry): void {
    if (!entry.idle) return;
    if (!entry.wanted) {
      if (this.#entries.get(entry.channel) === entry) this.#entries.delete(entry.channel);
      return;
    }
    if (this.#lingering.has(entry)) return;
    const timer = this.runtime().clock.clock.setTimer(LINGER_MS, () => {
      this.#lingering.delete(entry);
      // In use again: whoever leaves last starts another linger.
      if (entry.waiterCount > 0) return;
      entry.forgetChannel();
      this.dropIfIdle(entry);
    });
    this.#lingering.set(entry, timer);
  }

  rejectWaiters(error: LockError): void {
    for (const entry of [...this.#entries.values()]) entry.rejectAll(error);
  }

  close(error: LockError): void {
    for (const entry of [...this.#entries.values()]) entry.close(error);
    for (const timer of this.#lingering.values()) timer.cancel();
    this.#lingering.clear();
    this.#entries.clear();
    this.#attended.clear();
  }
}
