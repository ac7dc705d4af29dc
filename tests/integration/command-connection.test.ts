import { expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { systemClock } from '../../src/clock.js';
import type { Attempt } from '../../src/redis/connections/attempt.js';
import { CommandConnection } from '../../src/redis/connections/command-connection.js';
import { FaultProxy } from '../support/proxy/proxy.js';
import { testRedisUrl } from '../support/redis.js';
import { until } from '../support/time/until.js';

test('R20: a connection that twenty users leave at the same time is closed once, and opens again for the next user', async () => {
  const redis = new Redis(testRedisUrl(), { lazyConnect: true });
  const clock = systemClock((fn) => fn());
  const nobody = (): void => undefined;
  const reports = { error: nobody, clockUnavailable: nobody, disconnected: nobody };
  const connection = new CommandConnection(redis, clock, 1_000, reports);
  await connection.whenReady(clock.monotonic() + 5_000);
  const { stream } = redis;
  const listening = stream.listenerCount('close');
  for (let each = 0; each < 20; each += 1) connection.reconnect();
  expect(stream.listenerCount('close')).toBe(listening + 1);
  expect(connection.ready).toBe(false);
  await connection.whenReady(clock.monotonic() + 5_000);
  expect(redis.stream).not.toBe(stream);
  // Once more: an earlier close must not prevent it.
  connection.reconnect();
  await until(() => connection.ready, 'it is back again');
  connection.close();
});

test('R32: an idle connection ends even if its server never replies to a pending command', async () => {
  const { hostname, port } = new URL(testRedisUrl());
  const proxy = await FaultProxy.start({ host: hostname, port: Number(port) });
  const clock = systemClock((fn) => fn());
  const nobody = (): void => undefined;
  const redis = new Redis(proxy.url, { lazyConnect: true, protocol: 2, enableReadyCheck: false });
  const connection = new CommandConnection(redis, clock, 300, {
    error: nobody,
    clockUnavailable: nobody,
    disconnected: nobody,
  });
  try {
    await connection.whenReady(clock.monotonic() + 5_000);
    proxy.swallow({ command: 'ECHO', contains: 'silent' });
    const sentAt = clock.monotonic();
    let timedOut = 0;
    const attempt = (): Attempt => ({
      connection,
      sentAt,
      deadline: sentAt + 300,
      settleBy: sentAt + 300,
      doubtUntil: sentAt + 300,
      answersBefore: 0,
      answered: nobody,
      failed: nobody,
      timedOut: () => (timedOut += 1),
      isGrant: () => false,
      unconfirmed: nobody,
    });
    // The first is answered, so that the silence afterwards looks like one slow command.
    for (const word of ['answered', 'silent']) connection.send('echo', [word], attempt(), false);
    connection.retire();
    await until(() => timedOut === 1, 'one is not answered');
    await until(() => proxy.stats.open === 0, 'its connection is closed');
  } finally {
    connection.close();
    await proxy.close();
  }
});
