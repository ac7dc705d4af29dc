import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { admin } from '../redis.js';
import { until } from '../time/until.js';

export interface Message {
  readonly channel: string;
  readonly payload: string;
}

/** Records the messages on the channels of one name, as a subscribed client receives them. */
export class Published {
  readonly #messages: Message[] = [];
  readonly #markers = new Set<string>();
  readonly #mark: string;

  private constructor(
    private readonly redis: Redis,
    name: string,
  ) {
    this.#mark = `${name}:read-up-to-here`;
    redis.on('pmessage', (_pattern: string, channel: string, payload: string) => {
      if (channel === this.#mark) this.#markers.add(payload);
      else this.#messages.push({ channel, payload });
    });
  }

  /** @param name  name of the lock, or the common prefix of several names */
  static async on(name: string): Promise<Published> {
    const redis = admin().duplicate();
    const published = new Published(redis, name);
    await redis.psubscribe(`*${name.replace(/[\\*?[\]]/g, '\\$&')}*`);
    return published;
  }

  /** Returns the messages since the last call, in order. */
  async take(): Promise<Message[]> {
    const marker = randomUUID();
    await admin().publish(this.#mark, marker);
    await until(() => this.#markers.delete(marker), 'the marker has come, and with it all messages before it');
    return this.#messages.splice(0);
  }

  async close(): Promise<void> {
    await this.redis.quit();
  }
}
