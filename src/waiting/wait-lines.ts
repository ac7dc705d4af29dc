import type { Timer } from '../clock.js';
import type { LockError } from '../errors.js';
import type { ChannelSource } from '../redis/connections/channel-source.js';
import type { Tenure } from '../holding/tenure.js';
import { WaitLine, type LineRegistry, type WaitServices } from './wait-line.js';
import type { LockProtocol, WaitQueue } from '../protocols/lock-protocol.js';
import { QueuedLine } from './fair-places.js';
import { LockWaiter } from './waiter.js';

/** A subscription outlives its last waiter by this much: a hot lock must not subscribe once per section. */
const LINGER_MS = 500;
const KEPT_IDLE = 1_024;

/**
 * Names one line of waiters. Redisson puts braces around a name that has none, so `x` and `{x}` share a channel but no
 * key: they are two locks. All other keys have a channel of their own.
 */
function lineOf(key: string, channel: string, part: string | undefined): string {
  const place = key.includes('{') ? `{} ${channel}` : channel;
  return part === undefined ? place : `${part} ${place}`;
}

/** Key (and half) -> line, at least for as long as anybody of this client holds, waits or listens there. */
/** What all lines of one client need of it. */
interface LinesServices extends WaitServices {
  readonly options: WaitServices['options'] & { readonly fairRefreshMs: number };
}

export class WaitLines implements LineRegistry {
  readonly #lines = new Map<string, WaitLine>();
  /** Of owners that queue in Redis, until they have left: nobody else ever listens on their channels. */
  readonly #own = new Set<WaitLine>();
  /** By what is locked. */
  readonly #queues = new Map<string, QueuedLine>();
  readonly #attended = new Set<WaitLine>();
  readonly #lingering = new Map<WaitLine, Timer>();
  #sweepAt = KEPT_IDLE;

  constructor(
    private readonly services: LinesServices,
    private readonly subscriber: ChannelSource,
  ) {}

  /** The line of those that wait for the same as this protocol, but for those that queue in Redis. */
  lineFor({ key, channel, line, concurrent }: LockProtocol): WaitLine {
    return this.line(key, channel, line, concurrent);
  }

  /**
   * Readers and writers of one lock listen to the same channel and wait in lines of their own, as do calls that poll and
   * calls for other parts of the lock: `part` names the line.
   */
  line(key: string, channel: string, part?: string, concurrent = false): WaitLine {
    const name = lineOf(key, channel, part);
    let line = this.#lines.get(name);
    if (line === undefined) {
      if (this.#lines.size >= this.#sweepAt) this.#sweep();
      line = new WaitLine(this.services, this, this.subscriber, channel, concurrent);
      this.#lines.set(name, line);
    }
    return line;
  }

  /** For an owner that queues in Redis: it waits alone. */
  ownLine(channel: string, { key, queue }: LockProtocol): WaitLine {
    const { clock, longWaits, options } = this.services;
    let places = this.#queues.get(key);
    if (places === undefined) {
      places = new QueuedLine(clock, longWaits, options.fairRefreshMs, key, queue as WaitQueue);
      this.#queues.set(key, places);
    }
    places.lines += 1;
    const line = new WaitLine(this.services, this, this.subscriber, channel, false, places);
    this.#own.add(line);
    return line;
  }

  /** What this client has of a lock. */
  *holdersOf(key: string): Iterable<Tenure> {
    for (const line of this) {
      for (const tenure of line.holders) if (tenure.protocol.key === key) yield tenure;
    }
  }

  /** This client has forced what these owners have open, or may have: also what one of them is told of later is lost. */
  force({ key, parts }: LockProtocol, owners: readonly string[], inDoubt: boolean): void {
    const isMeant = ({ protocol, owner }: Tenure | LockWaiter): boolean =>
      protocol.key === key &&
      owners.includes(owner) &&
      (parts === undefined || protocol.parts?.overlaps(parts) === true);
    for (const line of [...this]) {
      for (const waiter of line.coming)
        if (waiter instanceof LockWaiter && isMeant(waiter)) waiter.forced = waiter.owner;
      for (const tenure of [...line.holders]) if (isMeant(tenure)) tenure.force(inDoubt);
    }
  }

  /** Entries in use. */
  get size(): number {
    let inUse = 0;
    for (const line of this) if (!line.idle || line.wanted) inUse += 1;
    return inUse;
  }

  *[Symbol.iterator](): Iterator<WaitLine> {
    yield* this.#lines.values();
    yield* this.#own;
  }

  /** Whether somebody waits at the line: only then is the subscription connection watched. */
  attend(line: WaitLine, attended: boolean): void {
    if (attended === this.#attended.has(line)) return;
    if (attended) this.#attended.add(line);
    else this.#attended.delete(line);
    this.subscriber.attend(this.#attended.size > 0);
  }

  /** Ends the line's subscription some time after it was last needed. */
  linger(line: WaitLine): void {
    // A release that close() did not wait for may end after everything else.
    if (this.services.client.closed || !line.idle) return;
    if (line.queue !== undefined) return this.#drop(line, line.queue);
    if (!line.wanted || this.#lingering.has(line)) return;
    const timer = this.services.clock.clock.setTimer(LINGER_MS, () => {
      this.#lingering.delete(line);
      // In use again: whoever leaves last starts another linger.
      if (line.waiterCount > 0) return;
      line.forgetChannel();
    });
    this.#lingering.set(line, timer);
  }

  /** No section to come has its owner. */
  #drop(line: WaitLine, places: QueuedLine): void {
    if (!this.#own.delete(line)) return;
    line.forgetChannel();
    places.lines -= 1;
    if (places.lines === 0) this.#queues.delete(places.key);
  }

  /** Idle entries are kept for the next section on their lock, up to a number that grows with those in use. */
  #sweep(): void {
    for (const [name, line] of this.#lines) if (line.idle && !line.wanted) this.#lines.delete(name);
    this.#sweepAt = Math.max(KEPT_IDLE, 2 * this.#lines.size);
  }

  rejectWaiters(error: LockError): void {
    for (const line of [...this]) line.rejectAll(error);
  }

  waitsBeside({ key, channel, otherLine }: LockProtocol): boolean {
    if (otherLine === undefined) return false;
    const line = this.#lines.get(lineOf(key, channel, otherLine));
    return line !== undefined && line.waiterCount > 0;
  }

  abandonTries(): void {
    for (const line of this) line.abandonTries();
  }

  async whenQuiet(): Promise<void> {
    await Promise.all([...this].map((line) => line.whenQuiet()));
  }

  close(error: LockError): void {
    for (const line of [...this]) line.close(error);
    for (const timer of this.#lingering.values()) timer.cancel();
    this.#lingering.clear();
    this.#lines.clear();
    this.#own.clear();
    this.#queues.clear();
    this.#attended.clear();
  }
}
