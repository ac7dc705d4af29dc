import { afterEach, expect, jest, test } from '@jest/globals';
import dns from 'node:dns';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import { inFlow, pause } from '../support/clients/lock-clients.js';
import { freshName, testRedisUrl } from '../support/redis.js';
import { startTlsServer } from '../support/servers/tls.js';
import { PARKED_MS } from '../support/time/pauses.js';

const clients: LockClient[] = [];
const servers: Server[] = [];
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
  for (const server of servers.splice(0)) server.close();
});

test.each<[string, (socket: Socket) => unknown, RegExp]>([
  ['a web server', (socket) => socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')), /"H"/],
  ['an SSH server', (socket) => socket.write('SSH-2.0-OpenSSH_9.6\r\n'), /"S"/],
  ['a mail server', (socket) => socket.write('220 ready\r\n'), /"2"/],
  ['a server that says nothing', () => undefined, /Socket timeout|no reply/],
  ['a server that closes', (socket) => socket.end(), /closed the connection during the handshake/],
  [
    'a server with too many clients',
    (socket) => socket.end('-ERR max number of clients reached\r\n'),
    /too many clients|max number of clients/,
  ],
])(
  'at the address of %s, the message of each call ends with the cause, and names no option of ioredis',
  async (...row) => {
    const [, behave, cause] = row;
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      behave(socket);
    }).listen(0, '127.0.0.1');
    servers.push(server);
    await once(server, 'listening');
    const client = createClient({
      url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
      commandTimeout: 300,
    });
    clients.push(client);
    const said: string[] = [];
    client.events.on('connectionError', (event) => said.push((event.cause as Error).message));
    for (const call of [() => client.ready(), () => client.getLock(freshName()).isLocked()]) {
      const { message } = (await call().catch((error: unknown) => error)) as Error;
      expect(message).toMatch(cause);
      said.push(message);
    }
    expect(said.filter((message) => message.includes('enableOfflineQueue'))).toEqual([]);
  },
);

test('at a port for TLS, the message of each call says so', async () => {
  const tls = await startTlsServer();
  const client = createClient({ url: `redis://127.0.0.1:${tls.port}`, commandTimeout: 600 });
  clients.push(client);
  const said: string[] = [];
  client.events.on('connectionError', (event) => said.push((event.cause as Error).message));
  await expect(client.ready()).rejects.toThrow(/TLS/);
  expect(said).toContainEqual(expect.stringContaining('rediss://'));
  await client.close();
  await tls.stop();
});

test('the message of a name with several addresses names each of them', async () => {
  const addresses = [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ];
  type Found = (error: null, found: typeof addresses) => void;
  const found = ((_name: string, _options: object, done: Found) => done(null, addresses)) as unknown;
  const looked = jest.spyOn(dns, 'lookup').mockImplementation(found as typeof dns.lookup);
  try {
    const client = createClient({ url: 'redis://both.test:1', commandTimeout: 300 });
    clients.push(client);
    const said: string[] = [];
    client.events.on('connectionError', (event) => said.push((event.cause as Error).message));
    const both = /connect ECONNREFUSED 127\.0\.0\.1:1; connect \w+ ::1:1/;
    await expect(client.ready()).rejects.toThrow(both);
    await expect(client.getLock(freshName()).isLocked()).rejects.toThrow(both);
    expect(said.filter((message) => !both.test(message))).toEqual([]);
  } finally {
    looked.mockRestore();
  }
});

test('ioredis warns at most once of a password that the server does not need', async () => {
  const warn = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
  try {
    const url = new URL(testRedisUrl());
    url.password = 'needless';
    const client = createClient({ url: url.href });
    clients.push(client);
    const lock = client.getLock(freshName());
    const hold = await inFlow(() => lock.acquire());
    const waiting = inFlow(() => lock.acquire({ waitTime: 5_000 }));
    await pause(PARKED_MS);
    await hold.release();
    await (await waiting).release();
    expect(warn.mock.calls.flat().filter((text) => String(text).includes('password'))).toHaveLength(1);
  } finally {
    warn.mockRestore();
  }
});
