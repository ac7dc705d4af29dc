import { afterEach, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { systemClock } from '../../src/clock.js';
import type { ChannelListener } from '../../src/redis/connections/channel-source.js';
import { Subscriber } from '../../src/redis/connections/subscriber.js';
import { closeClients, openClient, pause } from '../support/clients/lock-clients.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { LONG_QUIET_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

/* Each waiter of a fair lock has a channel of its own. */

afterEach(() => closeClients());

async function calls(command: string): Promise<number> {
  const stats = await admin().info('commandstats');
  return Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
}

const channelsOf = async (name: string): Promise<string[]> =>
  ((await admin().pubsub('CHANNELS', `*{${name}}*`)) as string[]).sort();

const WAITERS = 30;

test('one command ends the subscriptions of all waiters of a fair lock that have left', async () => {
  const client = await openClient();
  const [name, holder] = [freshName(), await openClient()];
  const hold = await holder.getFairLock(name).acquire();
  const before = await calls('unsubscribe');
  const lock = client.getFairLock(name);
  const sections = Array.from({ length: WAITERS }, () => lock.withLock({ waitTime: 30_000 }, () => undefined));
  await until(async () => (await channelsOf(name)).length === WAITERS, 'each waiter has subscribed');
  await hold.release();
  await Promise.all(sections);
  await until(async () => (await channelsOf(name)).length === 0, 'no waiter is subscribed');
  const sent = (await calls('unsubscribe')) - before;
  expect(sent).toBeGreaterThan(0);
  expect(sent).toBeLessThan(WAITERS / 3);
});

test('a channel that is wanted again while its subscription is about to end stays subscribed', async () => {
  const [redis, channel, messages] = [new Redis(testRedisUrl(), { lazyConnect: true }), freshName(), new Listener()];
  const source = new Subscriber(redis, systemClock(queueMicrotask), false, {
    error: fail,
    disconnected() {},
    moved: undefined,
  });
  try {
    source.want(channel, messages);
    await until(() => messages.confirmations === 1, 'the subscription is confirmed');
    const before = await calls('unsubscribe');
    source.forget(channel, messages);
    expect(source.isConfirmed(channel)).toBe(false);
    source.want(channel, messages);
    await until(() => messages.confirmations === 2, 'the subscription is confirmed again');
    await pause(LONG_QUIET_MS);
    expect(await calls('unsubscribe')).toBe(before);
    await admin().publish(channel, '0');
    await until(() => messages.count === 1, 'the message has arrived');
    source.forget(channel, messages);
    await until(async () => (await admin().pubsub('NUMSUB', channel))[1] === 0, 'the subscription has ended');
    await until(() => source.channelCount === 0, 'the confirmation has arrived');
  } finally {
    source.close();
  }
});

class Listener implements ChannelListener {
  confirmations = 0;
  count = 0;

  message(): void {
    this.count += 1;
  }

  confirmed(): void {
    this.confirmations += 1;
  }

  disconnected(): void {
    fail('the connection closed');
  }

  refused(error: Error): void {
    fail(error);
  }
}

function fail(cause: unknown): never {
  throw new Error(String(cause));
}
