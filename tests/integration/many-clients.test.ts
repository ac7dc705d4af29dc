import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { createClient, type CreateClientOptions, type LockClient } from '../../src/index.js';
import { testRedisUrl } from '../support/redis.js';

const clients: LockClient[] = [];
const warned = jest.spyOn(process, 'emitWarning');

beforeEach(() => void warned.mockReset().mockImplementation(() => undefined));
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
});

function open(count: number, options: () => CreateClientOptions): void {
  for (let i = 0; i < count; i += 1) clients.push(createClient(options()));
}

test('the tenth open client of equal options makes one warning, without credentials', async () => {
  const url = new URL(testRedisUrl());
  const redis = new Redis(url.href, { lazyConnect: true });
  const equal = (): CreateClientOptions => ({ url: url.href, handOff: { maxTime: 200 } });
  for (let i = 0; i < 20; i += 1) await createClient(equal()).close();
  open(9, equal);
  open(9, () => ({ url: url.href, handOff: { maxTime: 300 } }));
  open(9, () => ({ redis }));
  open(4, () => ({ redis: new Redis(url.href, { lazyConnect: true }) }));
  for (const client of clients.splice(0, 2)) await client.close();
  open(2, equal);
  expect(warned).not.toHaveBeenCalled();
  open(5, equal);
  open(5, () => ({ redis }));
  expect(warned.mock.calls).toEqual([
    [expect.stringContaining('10 clients with the same options are open'), { code: 'HOLDFAST_MANY_CLIENTS' }],
  ]);
  expect(warned.mock.calls[0]![0]).not.toContain(url.host);
});
