import { expect, test } from '@jest/globals';
import { createClient } from '../../src/client/create-client.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { until } from '../support/time/until.js';

test('a renewal that gets no answer is an error of the connection after 10 s, and the client asks again', async () => {
  const username = freshName('user').replace(/\W/g, '-');
  await admin().call('ACL', 'SETUSER', username, 'reset', 'on', '>first', '+@all', '~*', '&*');
  let asked = 0;
  const client = createClient({
    url: testRedisUrl(),
    credentials: () => {
      asked += 1;
      if (asked === 2) return new Promise<never>(() => undefined);
      return { username, password: 'first', ...(asked === 1 && { expiresIn: 400 }) };
    },
  });
  const causes: unknown[] = [];
  client.events.on('connectionError', ({ cause }) => causes.push((cause as Error).cause));
  try {
    await client.ready();
    await until(() => asked === 3, 'the client asks again', 20_000);
    expect(causes).toEqual([expect.objectContaining({ message: 'no answer within 10000 ms' })]);
    expect(await client.getLock(freshName()).withLock(() => 'inside')).toBe('inside');
  } finally {
    await client.close({ releaseHolds: true });
    await admin().call('ACL', 'DELUSER', username);
  }
}, 40_000);
