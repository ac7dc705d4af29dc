import { expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { systemClock } from '../../src/clock.js';
import { CommandConnection } from '../../src/redis/command-connection.js';
import { testRedisUrl } from '../support/redis.js';
import { until } from '../support/until.js';

test('R20: a connection that twenty leave at once is closed once, however many listeners that would take, and comes back', async () => {
  const redis = new Redis(testRedisUrl(), { lazyConnect: true });
  const clock = systemClock((fn) => fn());
  const nobody = (): void => undefined;
  const reports = { error: nobody, clockUnavailable: nobody, away: nobody };
  const connection = new CommandConnection(redis, clock, 1_000, reports);
  await connection.whenReady(clock.monotonic() + 5_000);
  const { stream } = redis;
  const listening = stream.listenerCount('close');
  for (let each = 0; each < 20; each += 1) connection.reconnect();
  expect(stream.listenerCount('close')).toBe(listening + 1);
  expect(connection.ready).toBe(false);
  await connection.whenReady(clock.monotonic() + 5_000);
  expect(redis.stream).not.toBe(stream);
  // And once more: what was closed before keeps nobody from it.
  connection.reconnect();
  await until(() => connection.ready, 'it is back again');
  connection.close();
});
