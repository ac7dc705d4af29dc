import type { Redis } from 'ioredis';
import type { Clock, Timer } from '../../clock.js';
import { redirectionIn, type Redirection } from '../cluster-slots.js';
import type { ChannelListener, ChannelSource } from './channel-source.js';
import { asksForCredentials } from './credentials.js';
import { connect, keepTrying } from './own-connection.js';
import { failureKind, isCredentialsError, refusal, withoutArguments } from '../server-error.js';
import { shortened } from '../../visible.js';
import { PING_MS, RESUBSCRIBE_MS, UNSUBSCRIBE_MS } from '../../timing.js';

export interface SubscriberReports {
  error(cause: unknown): void;
  /** The connection closed, and ioredis reconnects. */
  disconnected(): void;
  /** In a cluster: the slot of a channel moved. `to` is the new server, if the old server named it. */
  moved: ((to: Redirection | undefined) => void) | undefined;
}

interface Channel {
  /** A channel can have several listeners, such as readers and writers. */
  readonly listeners: Set<ChannelListener>;
  /** Number of unanswered SUBSCRIBE and UNSUBSCRIBE commands. A confirmation is valid only if it leaves 0. */
  unanswered: number;
  confirmed: boolean;
}

/** Channels in one command at most. */
const BATCH = 100;

/**
 * The connection that carries subscriptions. This class stores the wanted channels and subscribes again after every
 * reconnection, because ioredis forgets its subscriptions if the connection closes twice in a row.
 */
export class Subscriber implements ChannelSource {
  readonly #channels = new Map<string, Channel>();
  #state: 'unavailable' | 'ready' | 'closed' = 'unavailable';
  /** Number of closed connections. Tells replies on this connection from replies on an earlier one. */
  #epoch = 0;
  #attended = false;
  #ping: Timer | undefined;
  #retry: Timer | undefined;
  /** Channels without a listener, and the timer that unsubscribes them. */
  readonly #leaving = new Set<string>();
  #leavesAt: Timer | undefined;
  readonly #stopTrying: () => void;

  /** A `#` field: code that logs a lock must not log the password that the connection contains. */
  readonly #redis: Redis;

  constructor(
    redis: Redis,
    private readonly clock: Clock,
    private readonly sharded: boolean,
    private readonly reports: SubscriberReports,
  ) {
    this.#redis = redis;
    redis.on('ready', () => this.#becomeReady());
    redis.on('close', () => this.#becomeUnavailable());
    this.#stopTrying = keepTrying(redis, clock);
    redis.on('error', (error: Error) => {
      reports.error(withoutArguments(error));
      // An older ioredis takes the server's message that a slot moved for a reply to a command that it never sent.
      if (error.message.startsWith('Command queue state error')) redis.disconnect(true);
      // A wrong password does not become right while calls wait, unless the client asks for it.
      if (isCredentialsError(error) && !asksForCredentials(redis))
        for (const name of [...this.#channels.keys()]) this.#refused(name, error);
    });
    redis.on(sharded ? 'smessage' : 'message', (channel: string) => {
      for (const listener of this.#channels.get(channel)?.listeners ?? []) listener.message();
    });
    // Redis dropped subscriptions because their slot moved. The event does not name their channels.
    if (sharded) redis.on('moved', () => this.#checkAll());
  }

  want(name: string, listener: ChannelListener): void {
    if (this.#state === 'closed') return;
    const channel = this.#channels.get(name) ?? { listeners: new Set(), unanswered: 0, confirmed: false };
    channel.listeners.add(listener);
    this.#channels.set(name, channel);
    if (this.#state === 'ready') this.#subscribe([name]);
    else if (this.#redis.status === 'wait') connect(this.#redis);
  }

  forget(name: string, listener: ChannelListener): void {
    const channel = this.#channels.get(name);
    if (!channel?.listeners.delete(listener) || channel.listeners.size > 0) return;
    channel.confirmed = false;
    if (this.#state === 'ready') this.#unsubscribeSoon(name);
    else this.#channels.delete(name);
  }

  isConfirmed(name: string): boolean {
    return this.#channels.get(name)?.confirmed ?? false;
  }

  *leaving(): Iterable<string> {
    for (const [name, { listeners }] of this.#channels) if (listeners.size === 0) yield name;
  }

  /** The connection is needed but not ready. */
  get unavailable(): boolean {
    return this.#state === 'unavailable' && this.#redis.status !== 'wait';
  }

  get channelCount(): number {
    return this.#channels.size;
  }

  attend(attended: boolean): void {
    if (attended === this.#attended) return;
    this.#attended = attended;
    this.#ping?.cancel();
    this.#ping = undefined;
    if (attended) this.#schedulePing();
  }

  close(): void {
    this.#state = 'closed';
    this.#stopTrying();
    this.attend(false);
    this.#retry?.cancel();
    this.#forgetLeaving();
    this.#channels.clear();
    this.#redis.disconnect();
  }

  #becomeReady(): void {
    if (this.#state === 'closed') return;
    this.#state = 'ready';
    this.#subscribeMissing();
  }

  #becomeUnavailable(): void {
    if (this.#state === 'ready') this.#state = 'unavailable';
    this.#forgetLeaving();
    this.#epoch += 1;
    for (const [name, channel] of this.#channels) {
      channel.unanswered = 0;
      channel.confirmed = false;
      if (channel.listeners.size === 0) this.#channels.delete(name);
    }
    if (this.#state === 'closed') return;
    this.reports.disconnected();
    for (const { listeners } of [...this.#channels.values()])
      for (const listener of [...listeners]) listener.disconnected();
  }

  /** Subscribes to every channel again. Redis confirms the channels that it still serves and redirects the others. */
  #checkAll(): void {
    if (this.#state !== 'ready') return;
    this.reports.moved?.(undefined);
    const wanted: string[] = [];
    for (const [name, channel] of this.#channels) {
      channel.confirmed = false;
      if (channel.listeners.size > 0) wanted.push(name);
    }
    this.#subscribeAll(wanted);
  }

  #subscribeMissing(): void {
    const missing: string[] = [];
    for (const [name, channel] of this.#channels) {
      if (channel.listeners.size > 0 && !channel.confirmed && channel.unanswered === 0) missing.push(name);
    }
    this.#subscribeAll(missing);
  }

  #subscribeAll(names: string[]): void {
    // One SSUBSCRIBE cannot name channels of different slots.
    const batch = this.sharded ? 1 : BATCH;
    for (let i = 0; i < names.length; i += batch) this.#subscribe(names.slice(i, i + batch));
  }

  #subscribe(names: string[]): void {
    const epoch = this.#epoch;
    for (const name of names) this.#asked(name);
    (this.sharded ? this.#redis.ssubscribe(...names) : this.#redis.subscribe(...names)).then(
      () => {
        if (epoch !== this.#epoch) return;
        for (const name of names) {
          const channel = this.#answered(name);
          if (channel?.unanswered !== 0 || channel.listeners.size === 0) continue;
          channel.confirmed = true;
          for (const listener of channel.listeners) listener.confirmed();
        }
      },
      (error: unknown) => {
        if (epoch !== this.#epoch) return;
        const refused = failureKind(error as Error) === 'refused';
        for (const name of names) {
          this.#answered(name);
          // One rejected channel fails its whole batch. Subscribe to each channel alone to find the rejected one.
          if (refused && names.length > 1) this.#subscribe([name]);
          else if (refused) this.#refused(name, error as Error);
        }
        if (refused) return;
        const redirection = redirectionIn((error as Error).message);
        if (redirection !== undefined) this.reports.moved?.(redirection);
        this.#subscribeMissingSoon();
      },
    );
  }

  /** A fair lock subscribes to a channel for each waiter. So one command ends the subscriptions of several waiters. */
  #unsubscribeSoon(name: string): void {
    // One SUNSUBSCRIBE cannot name channels of different slots.
    if (this.sharded) return this.#unsubscribe([name]);
    this.#leaving.add(name);
    if (this.#leaving.size >= BATCH) return this.#unsubscribeLeaving();
    this.#leavesAt ??= this.clock.setTimer(UNSUBSCRIBE_MS, () => this.#unsubscribeLeaving());
  }

  #unsubscribeLeaving(): void {
    const unused = [...this.#leaving].filter((name) => this.#channels.get(name)?.listeners.size === 0);
    this.#forgetLeaving();
    if (unused.length > 0) this.#unsubscribe(unused);
  }

  #forgetLeaving(): void {
    this.#leaving.clear();
    this.#leavesAt?.cancel();
    this.#leavesAt = undefined;
  }

  #unsubscribe(names: string[]): void {
    const epoch = this.#epoch;
    for (const name of names) this.#asked(name);
    const answered = (): void => {
      for (const name of names) {
        const channel = this.#answered(name);
        if (channel?.unanswered === 0 && channel.listeners.size === 0) this.#channels.delete(name);
      }
    };
    (this.sharded ? this.#redis.sunsubscribe(...names) : this.#redis.unsubscribe(...names)).then(
      () => {
        if (epoch === this.#epoch) answered();
      },
      () => {
        if (epoch !== this.#epoch) return;
        // The slot moved to another server, so this server no longer has the subscription.
        answered();
        this.#subscribeMissingSoon();
      },
    );
  }

  #refused(name: string, error: Error): void {
    const refused = refusal(`the subscription to ${shortened(name)}`, error, { channel: name });
    for (const listener of [...(this.#channels.get(name)?.listeners ?? [])]) listener.refused(refused);
  }

  #asked(name: string): void {
    const channel = this.#channels.get(name);
    if (channel !== undefined) channel.unanswered += 1;
  }

  #answered(name: string): Channel | undefined {
    const channel = this.#channels.get(name);
    if (channel !== undefined) channel.unanswered -= 1;
    return channel;
  }

  #subscribeMissingSoon(): void {
    this.#retry?.cancel();
    this.#retry = this.clock.setTimer(RESUBSCRIBE_MS, () => {
      if (this.#state === 'ready') this.#subscribeMissing();
    });
  }

  #schedulePing(): void {
    this.#ping = this.clock.setTimer(PING_MS, () => {
      // If a PING is unanswered, the socket timeout closes the connection, and the client subscribes again.
      if (this.#state === 'ready') this.#redis.ping().catch(() => undefined);
      this.#schedulePing();
    });
  }
}
