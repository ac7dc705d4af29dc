import type { Timer } from '../clock.js';
import type { LockError } from '../errors.js';
import type { ChannelSource } from '../redis/connections/channel-source.js';
import type { Tenure } from '../holding/tenure.js';
import { WaitLine, type LineRegistry, type WaitServices } from './wait-line.js';
import type { LockProtocol, WaitQueue } from '../protocols/lock-protocol.js';
import { FairPlaces } from './fair-places.js';
import { LockWaiter } from './lock-waiter.js';
import type { Waiter } from './waiter.js';
import { LINGER_MS } from '../timing.js';

const KEPT_IDLE = 1_024;

/**
 * Returns the name of a line. Redisson puts braces around a name that has none, so `x` and `{x}` share a channel but no
 * key: they are two locks. Every other key has a channel of its own.
 */
function lineOf(key: string, channel: string, part: string | undefined): string {
  const place = key.includes('{') ? `{} ${channel}` : channel;
  return part === undefined ? place : `${part} ${place}`;
}

/** The services of the client that its lines use. */
interface LinesServices extends WaitServices {
  readonly options: WaitServices['options'] & { readonly fairRefreshMs: number };
}

/**
 * All lines of one client, by key and side. A line exists at least as long as a call of this client holds the lock or
 * waits for it, or the line is subscribed.
 */
export class WaitLines implements LineRegistry {
  readonly #lines = new Map<string, WaitLine>();
  /**
   * Lines of owners in a Redis queue, until the owner has left. No other line listens on the channel of such an owner.
   */
  readonly #own = new Set<WaitLine>();
  /** By key of the lock. */
  readonly #queues = new Map<string, FairPlaces>();
  readonly #attended = new Set<WaitLine>();
  readonly #lingering = new Map<WaitLine, Timer>();
  #sweepAt = KEPT_IDLE;

  constructor(
    private readonly services: LinesServices,
    private readonly subscriber: ChannelSource,
  ) {}

  /**
   * Returns the line of the calls that wait for the same as this protocol. Calls in a Redis queue have lines of their
   * own.
   */
  lineFor({ key, channel, line, concurrent }: LockProtocol): WaitLine {
    return this.line(key, channel, line, concurrent);
  }

  /**
   * Returns the line with the name `part`. Readers and writers of one lock listen to the same channel and wait in
   * separate lines. Calls that poll, and calls for other values of a group, also wait in separate lines.
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

  /** Creates the line of an owner in a Redis queue. The owner's waiter is the only one of the line. */
  ownLine(channel: string, { key, queue }: LockProtocol): WaitLine {
    const { clock, longWaits, options } = this.services;
    let places = this.#queues.get(key);
    if (places === undefined) {
      places = new FairPlaces(clock, longWaits, options.fairRefreshMs, key, queue as WaitQueue);
      this.#queues.set(key, places);
    }
    places.lines += 1;
    const line = new WaitLine(this.services, this, this.subscriber, channel, false, places);
    this.#own.add(line);
    return line;
  }

  /** The tenures of this client that have a hold of this key. */
  *holdersOf(key: string): Iterable<Tenure> {
    for (const line of this) {
      for (const tenure of line.holders) if (tenure.protocol.key === key) yield tenure;
    }
  }

  /**
   * Called when a forced unlock of this client released these owners, or may have released them. Their tenures are
   * lost. A tenure whose grant is still pending is lost as soon as the reply arrives.
   */
  force(
    { key, lockedValues }: Pick<LockProtocol, 'key' | 'lockedValues'>,
    owners: readonly string[],
    isUnanswered: boolean,
  ): void {
    const isMeant = ({ protocol, owner }: Tenure | LockWaiter): boolean =>
      protocol.key === key &&
      owners.includes(owner) &&
      (lockedValues === undefined || protocol.lockedValues?.overlaps(lockedValues) === true);
    for (const line of [...this]) {
      for (const waiter of line.pendingWaiters)
        if (waiter instanceof LockWaiter && isMeant(waiter)) waiter.forced = waiter.owner;
      for (const tenure of [...line.holders]) if (isMeant(tenure)) tenure.force(isUnanswered);
    }
  }

  /** Number of lines in use. */
  get size(): number {
    let inUse = 0;
    for (const line of this) if (!line.isUnused || line.isSubscribed) inUse += 1;
    return inUse;
  }

  *[Symbol.iterator](): Iterator<WaitLine> {
    yield* this.#lines.values();
    yield* this.#own;
  }

  /** Channels that a server may still count this client for, although none of its calls waits. */
  idleChannels(): ReadonlySet<string> {
    const idle = new Set<string>(this.subscriber.leaving());
    for (const line of this) if (line.isSubscribed && line.waiterCount === 0) idle.add(line.channel);
    for (const line of this) if (line.waiterCount > 0) idle.delete(line.channel);
    return idle;
  }

  attend(line: WaitLine, attended: boolean): void {
    if (attended === this.#attended.has(line)) return;
    if (attended) this.#attended.add(line);
    else this.#attended.delete(line);
    this.subscriber.attend(this.#attended.size > 0);
  }

  /** Removes an idle line for a Redis queue at once. Ends every other idle subscription after `LINGER_MS`. */
  linger(line: WaitLine): void {
    // close() does not wait for every release, so a tenure may end after close(). Start no timer then.
    if (this.services.client.closed || !line.isUnused) return;
    if (line.queue !== undefined) return this.#drop(line, line.queue);
    if (!line.isSubscribed || this.#lingering.has(line)) return;
    const timer = this.services.clock.clock.setTimer(LINGER_MS, () => {
      this.#lingering.delete(line);
      // The line is in use again. The last waiter that leaves starts another timer.
      if (line.waiterCount > 0) return;
      line.forgetChannel();
    });
    this.#lingering.set(line, timer);
  }

  /** Removes the line of an owner in a Redis queue: no later section uses the same owner. */
  #drop(line: WaitLine, places: FairPlaces): void {
    if (!this.#own.delete(line)) return;
    line.forgetChannel();
    places.lines -= 1;
    if (places.lines === 0) this.#queues.delete(places.key);
  }

  /**
   * Removes idle lines. The client keeps idle lines for the next section on their lock, up to a number that grows with
   * the number of lines in use.
   */
  #sweep(): void {
    for (const [name, line] of this.#lines) if (line.isUnused && !line.isSubscribed) this.#lines.delete(name);
    this.#sweepAt = Math.max(KEPT_IDLE, 2 * this.#lines.size);
  }

  /** Rejects the waiting calls, except those that are kept. */
  rejectWaiters(error: LockError, isKept: (waiter: Waiter) => boolean = () => false): void {
    for (const line of [...this]) line.rejectAll(error, isKept);
  }

  beside({ key, channel, otherLine }: LockProtocol): WaitLine | undefined {
    return otherLine === undefined ? undefined : this.#lines.get(lineOf(key, channel, otherLine));
  }

  abandonTries(): void {
    for (const line of this) line.abandonTries();
  }

  async whenIdle(): Promise<void> {
    await Promise.all([...this].map((line) => line.whenIdle()));
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
