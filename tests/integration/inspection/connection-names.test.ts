import { afterEach, describe, expect, test } from '@jest/globals';
import { hostname } from 'node:os';
import { Redis } from 'ioredis';
import { createClient } from '../../../src/client/create-client.js';
import { connectionNameOf, parseConnectionName } from '../../../src/redis/connections/connection-name.js';
import { closeClients, holdElsewhere, inFlow, openClient } from '../../support/clients/lock-clients.js';
import { admin, freshName, testRedisUrl } from '../../support/redis.js';
import { limitedUser } from '../../support/servers/limited-user.js';
import { until } from '../../support/time/until.js';

afterEach(closeClients);

/** The names of the connections whose name has this text. */
async function namesWith(text: string): Promise<string[]> {
  const list = String(await admin().client('LIST'));
  return [...list.matchAll(/ name=(\S*)/g)].map(([, name]) => name!).filter((name) => name.includes(text));
}

test('every connection of a client names the client, its host and its process', async () => {
  const client = await openClient({ clientName: 'order service: ümlaut' });
  const name = freshName();
  const held = await holdElsewhere(client.getLock(name));
  const waiting = inFlow(() => client.getLock(name).acquire());
  await until(async () => (await namesWith(client.id)).length === 2, 'commands and subscriptions are connected');
  const names = await namesWith(client.id);
  expect(new Set(names).size).toBe(1);
  expect(parseConnectionName(names[0]!)).toEqual({
    clientId: client.id,
    clientName: 'order service: ümlaut',
    host: hostname(),
    pid: process.pid,
  });
  await held.release();
  await (await waiting).release();
});

test('the name of the given connection is the default, and that connection keeps its own', async () => {
  const given = new Redis(testRedisUrl(), { connectionName: 'shop' });
  const client = createClient({ redis: given });
  await client.ready();
  await given.ping();
  expect(await namesWith('shop')).toEqual(expect.arrayContaining(['shop', connectionNameOf(client.id, 'shop')]));
  await client.close();
  given.disconnect();
});

test('a server that refuses CLIENT is used without names', async () => {
  const mark = freshName('').split(':')[0]!;
  const user = limitedUser(mark, ['getLock']);
  await user.allow();
  const url = Object.assign(new URL(testRedisUrl()), user.credentials).href;
  const errors: unknown[] = [];
  await using client = createClient({ url, clientName: 'refused' });
  client.events.on('connectionError', (event) => errors.push(event));
  expect(await client.getLock(freshName()).withLock(() => 'in')).toBe('in');
  expect(await namesWith(client.id)).toEqual([]);
  expect(errors).toEqual([]);
});

describe('a name', () => {
  test.each([['a b'], ['x:y'], ['100 %'], ['ü'], ['']])(
    'of a client called %j is one word, and is read back',
    (called) => {
      const name = connectionNameOf('8743c9c0-0795-4907-87fd-6c719a6b4586', called);
      expect(name).toMatch(/^[!-~]+$/);
      expect(parseConnectionName(name)?.clientName).toBe(called);
    },
  );

  test.each([['holdfast'], ['holdfast:a:b:c'], ['holdfast:a:%:c:1'], ['holdfast:a:b:c:x'], ['other:a:b:c:1'], ['']])(
    'of another client is not read as one: %j',
    (name) => expect(parseConnectionName(name)).toBeUndefined(),
  );

  test.each([['x'.repeat(101)], ['\ud800'], [7 as unknown as string]])('of %j is refused', (clientName) => {
    expect(() => createClient({ url: testRedisUrl(), clientName })).toThrow('clientName');
  });
});
