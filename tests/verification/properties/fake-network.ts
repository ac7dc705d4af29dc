import { Deadlines, type Attempt, type CommandPort } from '../../../src/redis/connections/attempt.js';
import { NotSentError } from '../../../src/redis/server-error.js';
import type { ChannelListener, ChannelSource } from '../../../src/redis/connections/channel-source.js';
import type { CommandRoutes } from '../../../src/redis/topologies/topology.js';
import type { FakeClock } from '../../support/time/fake-clock.js';
import type { Random } from '../../support/random.js';
import { AHEAD_MS, replyError, type FakeServer, type Subscribers } from './fake-server.js';

/** The fates of the requests of a client; each number is a percentage. */
export interface Weather {
  /** ms that one way may take at most. */
  readonly delay: number;
  /** The request never arrives. */
  readonly loseRequest: number;
  /** It runs, and its reply never arrives. */
  readonly loseReply: number;
  /** It arrives up to one second after every caller has stopped waiting. */
  readonly late: number;
  /** The server answers LOADING. */
  readonly refuse: number;
}

export const CALM: Weather = { delay: 1, loseRequest: 0, loseReply: 0, late: 0, refuse: 0 };
const LATE_MS = 1_000;

/** The call that a request is sent for; nothing of it may run when it has failed. */
export interface Sender {
  readonly failed: boolean;
  readonly sent: number;
  noteSent(): void;
}

/**
 * The command connection of a client: requests may overtake each other, be lost in either direction, or arrive late.
 */
export class FakeConnection {
  weather = CALM;
  #awayUntil = 0;
  readonly #deadlines: Deadlines;

  constructor(
    private readonly clock: FakeClock,
    private readonly server: FakeServer,
    private readonly random: Random,
    /** ms by which this client's lower bound of the server's clock is behind it. */
    private readonly behindMs: number,
    private readonly deliver: (run: () => unknown, sender: Sender | undefined) => unknown,
  ) {
    this.#deadlines = new Deadlines(clock, (attempt) => attempt.timedOut());
  }

  get pending(): number {
    return this.#deadlines.size;
  }

  /** Not ready for so long. */
  goAway(ms: number): void {
    this.#awayUntil = this.clock.monotonic() + ms;
  }

  routesFor(sender: Sender | undefined): CommandRoutes {
    const port: CommandPort = {
      ready: true,
      session: this,
      notAfter: (sentAt, deadline) => {
        const ahead = AHEAD_MS - this.behindMs;
        const notAfter = Math.floor(ahead + sentAt + 0.9 * (deadline - sentAt));
        return { text: String(notAfter), doubtUntil: notAfter - ahead + 1 };
      },
      send: (name, words, attempt) => this.#send(name, words, attempt, sender),
      whenFlushed: () => true,
      whenReady: (until) => this.#whenReady(until),
      lookAtClock: () => Promise.resolve(),
    };
    const connect = async (until: number): Promise<CommandPort> => (await this.#whenReady(until), port);
    return {
      publish: 'PUBLISH',
      connectionFor: () => (this.clock.monotonic() >= this.#awayUntil ? port : undefined),
      connect: (_key, _confirmed, until) => connect(until),
      redirected: () => undefined,
    };
  }

  #whenReady(until: number): Promise<void> {
    const readyIn = this.#awayUntil - this.clock.monotonic();
    if (readyIn <= 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      if (this.#awayUntil <= until) this.clock.setTimer(readyIn, resolve);
      else this.clock.setTimer(until - this.clock.monotonic(), () => reject(new NotSentError('away')));
    });
  }

  #send(name: string, words: string[], attempt: Attempt, sender: Sender | undefined): void {
    const { delay, loseRequest, loseReply, late, refuse } = this.weather;
    const draw = (): number => this.random.below(100);
    const one = (): number => this.random.below(delay);
    sender?.noteSent();
    this.#deadlines.add(attempt);
    const answer = (give: () => void): void => {
      this.#deadlines.delete(attempt);
      give();
    };
    if (draw() < loseRequest) return this.#mayBreak(attempt);
    const isLate = draw() < late;
    if (isLate) this.#mayBreak(attempt);
    this.clock.setTimer(1 + one() + (isLate ? this.random.below(LATE_MS) : 0), () => {
      if (draw() < refuse) {
        return void this.clock.setTimer(1 + one(), () => answer(() => attempt.failed(replyError('LOADING later'))));
      }
      let reply: unknown;
      let error: Error | undefined;
      try {
        reply = this.deliver(() => this.server.run(name, words), sender);
      } catch (thrown) {
        error = thrown as Error;
        if (error.name !== 'ReplyError') throw error;
      }
      if (draw() < loseReply) return this.#mayBreak(attempt);
      this.clock.setTimer(1 + one(), () => {
        answer(() => (error === undefined ? attempt.answered(reply) : attempt.failed(error)));
      });
    });
  }

  /** Half of the losses are losses of the connection, which the client notices. */
  #mayBreak(attempt: Attempt): void {
    if (this.random.below(2) === 0) return;
    this.clock.setTimer(1 + this.random.below(50), () => {
      this.#deadlines.delete(attempt);
      attempt.failed(new Error('Connection is closed.'));
    });
  }
}

/** A client's connection for subscriptions: in order, and lost whole when it is cut. */
export class FakeSubscriber implements ChannelSource {
  readonly #listeners = new Map<string, Set<ChannelListener>>();
  readonly #atServer = new Set<string>();
  readonly #confirmed = new Set<string>();
  /** SUBSCRIBE and UNSUBSCRIBE of a channel that are not answered. */
  readonly #unanswered = new Map<string, number>();
  #life = 0;
  #up = true;
  #lastAt = 0;
  attended = false;

  constructor(
    private readonly clock: FakeClock,
    private readonly random: Random,
    private readonly delay: () => number,
  ) {}

  get size(): number {
    return this.#listeners.size;
  }

  leaving(): Iterable<string> {
    return [];
  }

  want(channel: string, listener: ChannelListener): void {
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(listener));
    this.#ask(channel, true);
  }

  forget(channel: string, listener: ChannelListener): void {
    const listeners = this.#listeners.get(channel);
    listeners?.delete(listener);
    if (listeners === undefined || listeners.size > 0) return;
    this.#listeners.delete(channel);
    this.#confirmed.delete(channel);
    this.#ask(channel, false);
  }

  isConfirmed(channel: string): boolean {
    return this.#confirmed.has(channel);
  }

  attend(attended: boolean): void {
    this.attended = attended;
  }

  hears(channel: string): boolean {
    return this.#atServer.has(channel);
  }

  published(channel: string): void {
    this.#inOrder(() => {
      for (const listener of [...(this.#listeners.get(channel) ?? [])]) listener.message();
    });
  }

  cut(ms: number): void {
    this.#life += 1;
    this.#up = false;
    this.#atServer.clear();
    this.#confirmed.clear();
    this.#unanswered.clear();
    const life = this.#life;
    this.clock.setTimer(ms, () => {
      if (life !== this.#life) return;
      this.#up = true;
      for (const channel of this.#listeners.keys()) this.#ask(channel, true);
    });
  }

  #ask(channel: string, subscribe: boolean): void {
    if (!this.#up) return;
    this.#unanswered.set(channel, (this.#unanswered.get(channel) ?? 0) + 1);
    this.#inOrder(() => {
      if (subscribe) this.#atServer.add(channel);
      else this.#atServer.delete(channel);
      this.#inOrder(() => {
        const left = this.#unanswered.get(channel)! - 1;
        this.#unanswered.set(channel, left);
        if (!subscribe || left > 0) return;
        this.#confirmed.add(channel);
        for (const listener of [...(this.#listeners.get(channel) ?? [])]) listener.confirmed();
      });
    });
  }

  #inOrder(fn: () => void): void {
    const life = this.#life;
    const now = this.clock.monotonic();
    this.#lastAt = Math.max(this.#lastAt, now + 1 + this.random.below(this.delay()));
    this.clock.setTimer(this.#lastAt - now, () => {
      if (life === this.#life) fn();
    });
  }
}

/** All subscribers at the server. */
export class FakeSubscribers implements Subscribers {
  readonly all: FakeSubscriber[] = [];

  constructor(private readonly channelOf: (key: string) => string) {}

  count(key: string): number {
    return this.all.filter((subscriber) => subscriber.hears(this.channelOf(key))).length;
  }

  publish(key: string): void {
    for (const each of this.all) if (each.hears(this.channelOf(key))) each.published(this.channelOf(key));
  }
}
