import type { Timer } from '../clock.js';
import type { LockError } from '../errors.js';
import type { ChannelSource } from '../redis/topologies/topology.js';
import type { Tenure } from '../holding/tenure.js';
import { LockEntry } from './wait-line.js';
import type { LockProtocol, WaitQueue } from '../protocols/lock-protocol.js';
import type { LockRuntime } from './lock-runtime.js';
import { QueuedLine } from './fair-places.js';
import { QueueReleases } from './queue-releases.js';
import { LockWaiter } from './waiter.js';

/** A subscription outlives its last waiter by this much: a hot lock must not subscribe once per section. */
const LINGER_MS = 500;
const KEPT_IDLE = 1_024;

/**
 * Names one line of waiters. Redisson puts braces around a name that has none, so `x` and `{x}` share a channel but no
 * key: they are two locks. All other keys have a channel of their own.
 */
function lineOf(key: string, channel: string, kind: string | undefined): string {
  const place = key.includes('{') ? `{} ${channel}` : channel;
  return kind === undefined ? place : `${kind} ${place}`;
}

/** Key (and half) -> entry, at least for as long as anybody of this client holds, waits or listens there. */
export class EntryRegistry {
  readonly #entries = new Map<string, LockEntry>();
  /** Of owners that queue in Redis, until they have left: nobody else ever listens on their channels. */
  readonly #own = new Set<LockEntry>();
  /** By what is locked. */
  readonly #lines = new Map<string, QueuedLine>();
  readonly queueReleases = new QueueReleases();
  readonly #attended = new Set<LockEntry>();
  readonly #lingering = new Map<LockEntry, Timer>();
  #sweepAt = KEPT_IDLE;

  constructor(
    private readonly runtime: () => LockRuntime,
    private readonly subscriber: () => ChannelSource,
  ) {}

  /**
   * Readers and writers of one lock hear of the same things, but stand in lines of their own, as do those who poll and
   * those who want other parts of it.
   */
  entry(key: string, channel: string, kind?: string): LockEntry {
    const line = lineOf(key, channel, kind);
    let entry = this.#entries.get(line);
    if (entry === undefined) {
      if (this.#entries.size >= this.#sweepAt) this.#sweep();
      entry = new LockEntry(this.runtime(), this, this.subscriber(), key, channel, kind === 'read');
      this.#entries.set(line, entry);
    }
    return entry;
  }

  /** For an owner that queues in Redis: it waits alone. */
  ownEntry(channel: string, { key, queue }: LockProtocol): LockEntry {
    let line = this.#lines.get(key);
    if (line === undefined) {
      line = new QueuedLine(this.runtime(), key, queue as WaitQueue);
      this.#lines.set(key, line);
    }
    line.entries += 1;
    const entry = new LockEntry(this.runtime(), this, this.subscriber(), key, channel, false, line);
    this.#own.add(entry);
    return entry;
  }

  /** What this client has of a lock. */
  *holdersOf(key: string): Iterable<Tenure> {
    for (const entry of this) {
      for (const tenure of entry.holders) if (tenure.protocol.key === key) yield tenure;
    }
  }

  /** This client has forced what these owners have open, or may have: also what one of them is told of later is lost. */
  force({ key, parts }: LockProtocol, owners: readonly string[], inDoubt: boolean): void {
    const isMeant = ({ protocol, owner }: Tenure | LockWaiter): boolean =>
      protocol.key === key &&
      owners.includes(owner) &&
      (parts === undefined || protocol.parts?.overlaps(parts) === true);
    for (const entry of [...this]) {
      for (const waiter of entry.coming)
        if (waiter instanceof LockWaiter && isMeant(waiter)) waiter.forced = waiter.owner;
      for (const tenure of [...entry.holders]) if (isMeant(tenure)) tenure.force(inDoubt);
    }
  }

  /** Entries in use. */
  get size(): number {
    let inUse = 0;
    for (const entry of this) if (!entry.idle || entry.wanted) inUse += 1;
    return inUse;
  }

  *[Symbol.iterator](): Iterator<LockEntry> {
    yield* this.#entries.values();
    yield* this.#own;
  }

  /** Whether somebody waits at the entry: only then is the subscription connection watched. */
  attend(entry: LockEntry, attended: boolean): void {
    if (attended === this.#attended.has(entry)) return;
    if (attended) this.#attended.add(entry);
    else this.#attended.delete(entry);
    this.subscriber().attend(this.#attended.size > 0);
  }

  /** Ends the entry's subscription some time after it was last needed. */
  linger(entry: LockEntry): void {
    // A release that close() did not wait for may end after everything else.
    if (this.runtime().closed || !entry.idle) return;
    if (entry.queue !== undefined) return this.#drop(entry, entry.queue);
    if (!entry.wanted || this.#lingering.has(entry)) return;
    const timer = this.runtime().clock.clock.setTimer(LINGER_MS, () => {
      this.#lingering.delete(entry);
      // In use again: whoever leaves last starts another linger.
      if (entry.waiterCount > 0) return;
      entry.forgetChannel();
    });
    this.#lingering.set(entry, timer);
  }

  /** No section to come has its owner. */
  #drop(entry: LockEntry, line: QueuedLine): void {
    if (!this.#own.delete(entry)) return;
    entry.forgetChannel();
    line.entries -= 1;
    if (line.entries === 0) this.#lines.delete(line.key);
  }

  /** Idle entries are kept for the next section on their lock, up to a number that grows with those in use. */
  #sweep(): void {
    for (const [line, entry] of this.#entries) if (entry.idle && !entry.wanted) this.#entries.delete(line);
    this.#sweepAt = Math.max(KEPT_IDLE, 2 * this.#entries.size);
  }

  rejectWaiters(error: LockError): void {
    for (const entry of [...this]) entry.rejectAll(error);
  }

  /** Readers are the only ones who stand in another line of a lock that is handed on. */
  waitsBeside(key: string, channel: string, entry: LockEntry): boolean {
    const readers = this.#entries.get(lineOf(key, channel, 'read'));
    return readers !== undefined && readers !== entry && readers.waiterCount > 0;
  }

  abandonTries(): void {
    for (const entry of this) entry.abandonTries();
  }

  async whenQuiet(): Promise<void> {
    await Promise.all([...this].map((entry) => entry.whenQuiet()));
  }

  close(error: LockError): void {
    for (const entry of [...this]) entry.close(error);
    for (const timer of this.#lingering.values()) timer.cancel();
    this.#lingering.clear();
    this.#entries.clear();
    this.#own.clear();
    this.#lines.clear();
    this.#attended.clear();
  }
}
