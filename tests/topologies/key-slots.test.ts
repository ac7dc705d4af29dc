import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { keySlot } from '../../src/redis/cluster-slots.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';

let server: RedisServer;
beforeAll(async () => {
  server = await startServer({ loneMaster: true });
});
afterAll(() => server.stop());

test.each(['a', 'a{b', '{a}b', 'a}{b}', '{}a}', 'x{}y}z', '{a}{b}', '{ü}x', '😀', '\ud800x', '{\ud800}', ''])(
  'the slot of the key %j is that of Redis',
  async (key) => {
    expect(keySlot(key)).toBe(await server.command('CLUSTER', 'KEYSLOT', key));
  },
);
