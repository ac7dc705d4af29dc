import { expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { delay } from '../../../bench/network.js';
import { admin } from '../../support/redis.js';

test('the network of the bench delays each message in both directions, and passes on the last reply of a closed connection', async () => {
  const { host, port } = admin().options;
  const network = await delay(`redis://${host}:${port}`);
  try {
    const redis = new Redis(network.url);
    await redis.ping();
    const begun = performance.now();
    expect(await redis.ping()).toBe('PONG');
    expect(performance.now() - begun).toBeGreaterThanOrEqual(1.9);
    expect(await redis.quit()).toBe('OK');
  } finally {
    network.close();
  }
});
