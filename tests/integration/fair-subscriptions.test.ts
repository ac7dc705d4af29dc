import { afterEach, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { systemClock } from '../../src/clock.js';
import type { ChannelListener } from '../../src/redis/connections/channel-source.js';
import { Subscriber } from '../../src/redis/connections/subscriber.js';
import { closeClients, openClient, openProxy, pause } from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { LONG_QUIET_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

/* Each waiter of a fair lock has a channel of its own. */

afterEach(() => closeClients());

const channelsOf = async (name: string): Promise<string[]> =>
  ((await admin().pubsub('CHANNELS', `*{${name}}*`)) as string[]).sort();

const WAITERS = 30;

test('one command ends the subscriptions of all waiters of a fair lock that have left', async () => {
  // The server counts the commands of all files that run beside this one.
  const { proxy, url } = await openProxy();
  const ended = proxy.observe({ command: 'UNSUBSCRIBE', times: Infinity });
  const client = await openClient({ url });
  const [name, holder] = [freshName(), await openClient()];
  const hold = await holder.getFairLock(name).acquire();
  const lock = client.getFairLock(name);
  const sections = Array.from({ length: WAITERS }, () => lock.withLock({ waitTime: 30_000 }, () => undefined));
  await until(async () => (await channelsOf(name)).length === WAITERS, 'each waiter has subscribed');
  await hold.release();
  await Promise.all(sections);
  await until(async () => (await channelsOf(name)).length === 0, 'no waiter is subscribed');
  expect(ended.count).toBeGreaterThan(0);
  expect(ended.count).toBeLessThan(WAITERS / 3);
});

test('a channel that is wanted again while its subscription is about to end stays subscribed', async () => {
  const { proxy, url } = await openProxy();
  const ended = proxy.observe({ command: 'UNSUBSCRIBE', times: Infinity });
  const [redis, channel, messages] = [new Redis(url, { lazyConnect: true }), freshName(), new Listener()];
  const source = new Subscriber(redis, systemClock(queueMicrotask), false, {
    error: fail,
    disconnected() {},
    moved: undefined,
  });
  try {
    source.want(channel, messages);
    await until(() => messages.confirmations === 1, 'the subscription is confirmed');
    source.forget(channel, messages);
    expect(source.isConfirmed(channel)).toBe(false);
    source.want(channel, messages);
    await until(() => messages.confirmations === 2, 'the subscription is confirmed again');
    await pause(LONG_QUIET_MS);
    expect(ended.count).toBe(0);
    await admin().publish(channel, '0');
    await until(() => messages.count === 1, 'the message has arrived');
    source.forget(channel, messages);
    await until(async () => (await admin().pubsub('NUMSUB', channel))[1] === 0, 'the subscription has ended');
    await until(() => source.channelCount === 0, 'the confirmation has arrived');
    expect(ended.count).toBe(1);
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
