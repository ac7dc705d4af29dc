import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Redis, type RedisOptions } from 'ioredis';
import { once } from 'node:events';
import { connect as connectSocket, type Socket } from 'node:net';
import { FaultProxy } from './proxy.js';
import { encodeRequest } from './resp.js';
import { startServer, type RedisServer } from '../servers/servers.js';
import { until } from '../time/until.js';

let server: RedisServer;
let proxy: FaultProxy;
const clients: Redis[] = [];
const sockets: Socket[] = [];

beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

beforeEach(async () => {
  await server.admin.flushall();
  proxy = await FaultProxy.start(server.address);
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.disconnect();
  for (const socket of sockets.splice(0)) socket.destroy();
  await proxy.close();
});

/** A client that sends each command once and never again. */
function connect(options: Omit<RedisOptions, 'replyMapping'> = {}): Redis {
  const { host, port } = proxy;
  const once: Omit<RedisOptions, 'replyMapping'> = { maxRetriesPerRequest: 0, retryStrategy: () => null };
  const client = new Redis({ ...once, disconnectTimeout: 50, ...options, host, port });
  client.on('error', () => undefined);
  clients.push(client);
  return client;
}

/** A raw connection that shows the received data, which a client library would hide. */
async function openSocket(port = proxy.port): Promise<{ socket: Socket; received: () => string }> {
  const socket = connectSocket({ host: proxy.host, port });
  sockets.push(socket);
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return { socket, received: () => text };
}

const request = (...args: string[]): Buffer => encodeRequest(args);
const counter = async (): Promise<number> => Number(await server.admin.get('counter'));
const incr = { command: 'INCR' };

describe.each([2, 3] as const)('without faults, RESP%d', (protocol) => {
  test('commands, errors, scripts, transactions and large values pass unchanged', async () => {
    const client = connect({ protocol });
    const large = 'x'.repeat(3_000_000);
    expect(await client.set('large', large)).toBe('OK');
    expect(await client.get('large')).toBe(large);
    expect(await client.hset('hash', 'a', 1, 'b', 2)).toBe(2);
    expect(await client.hgetall('hash')).toEqual({ a: '1', b: '2' });
    expect(await client.eval('return {1, {2, {"three"}}, false}', 0)).toEqual([1, [2, ['three']], null]);
    await expect(client.call('NOSUCH')).rejects.toThrow('unknown command');
    expect(await client.multi().incr('counter').incr('counter').exec()).toEqual([
      [null, 1],
      [null, 2],
    ]);
    const pipeline = client.pipeline();
    for (let i = 0; i < 500; i++) pipeline.incr('counter');
    expect((await pipeline.exec())?.at(-1)).toEqual([null, 502]);
    expect(proxy.stats.commands.get('INCR')).toBe(502);
    expect(proxy.log.filter(({ name }) => name === 'SET')[0]?.args[0]).toBe('large');
  });

  test('a connection becomes a subscriber with its first SUBSCRIBE and each of its replies finds its command', async () => {
    const subscriber = connect({ protocol });
    const publisher = connect({ protocol });
    await publisher.ping();
    const messages: string[] = [];
    subscriber.on('message', (channel: string, text: string) => messages.push(`${channel} ${text}`));
    expect(await subscriber.subscribe('a', 'b')).toBe(2);
    expect(await subscriber.psubscribe('p*')).toBe(3);
    await publisher.publish('a', 'one');
    expect(await subscriber.unsubscribe('a', 'b')).toBe(1);
    await publisher.publish('b', 'lost');
    await subscriber.subscribe('c');
    await publisher.publish('c', 'two');
    await until(() => messages.length === 2, 'both messages have come');
    expect(messages).toEqual(['a one', 'c two']);
    expect(proxy.connections({ kind: 'subscriber' }).map(({ id }) => id)).toEqual([1]);
    expect(proxy.connections({ kind: 'command' }).map(({ id }) => id)).toEqual([2]);
    expect(proxy.log.filter(({ answeredAt }) => answeredAt === undefined)).toEqual([]);
  });
});

test('UNSUBSCRIBE without channels is answered once per channel, and once without any', async () => {
  const { socket, received } = await openSocket();
  const empty = [request('UNSUBSCRIBE'), request('SUBSCRIBE', 'a', 'b'), request('PSUBSCRIBE', 'p*')];
  socket.write(
    Buffer.concat([...empty, request('UNSUBSCRIBE'), request('PING'), request('PUNSUBSCRIBE'), request('PING')]),
  );
  await until(() => received().endsWith('+PONG\r\n'), 'the last reply has come');
  expect(proxy.log.map(({ name, answeredAt }) => [name, answeredAt !== undefined])).toEqual(
    ['UNSUBSCRIBE', 'SUBSCRIBE', 'PSUBSCRIBE', 'UNSUBSCRIBE', 'PING', 'PUNSUBSCRIBE', 'PING'].map((name) => [
      name,
      true,
    ]),
  );
});

describe('cut', () => {
  test('cut ends the selected connections at once and keeps the others', async () => {
    const named = connect({ connectionName: 'victim' });
    const other = connect();
    await Promise.all([named.ping(), other.ping()]);
    const ended = once(named, 'end');
    expect(proxy.cut({ connection: ({ name }) => name === 'victim' })).toBe(1);
    await ended;
    expect(await other.ping()).toBe('PONG');
    expect(proxy.stats).toMatchObject({ accepted: 2, open: 1 });
    expect(proxy.stats.faults.get('cut')).toBe(1);
  });

  test('cutBefore: the server never sees the command', async () => {
    const client = connect();
    const fault = proxy.cutBefore({ ...incr, nth: 2 });
    expect(await client.incr('counter')).toBe(1);
    await expect(client.incr('counter')).rejects.toThrow();
    await fault.applied;
    const reader = connect();
    expect(await reader.get('counter')).toBe('1');
    expect(await reader.incr('counter')).toBe(2);
    expect(proxy.log.filter(({ name }) => name === 'INCR').map((command) => command.deliveredAt !== undefined)).toEqual(
      [true, false, true],
    );
  });

  test('cutBefore in a pipeline: earlier commands are executed and later ones are not', async () => {
    const client = connect();
    await client.ping();
    proxy.cutBefore({ contains: 'victim' });
    const outcomes = Promise.allSettled([client.incr('counter'), client.incr('victim'), client.incr('counter')]);
    expect((await outcomes).at(-1)?.status).toBe('rejected');
    await until(async () => (await counter()) === 1, 'the first was executed');
    expect(await server.keys()).toEqual(['counter']);
  });

  test('cutAfter: the server has executed the command and its reply never arrives', async () => {
    const { socket, received } = await openSocket();
    const fault = proxy.cutAfter(incr);
    const closed = once(socket, 'close');
    socket.write(Buffer.concat([request('PING'), request('INCR', 'counter'), request('INCR', 'counter')]));
    await fault.applied;
    expect(await counter()).toBeGreaterThanOrEqual(1);
    await closed;
    expect(received()).toBe('+PONG\r\n');
    expect(proxy.log[1]?.answeredAt).toBeDefined();
  });

  test('cutAfter makes a client that resends execute the command twice', async () => {
    const client = connect({ maxRetriesPerRequest: null, retryStrategy: () => 1 });
    const fault = proxy.cutAfter(incr);
    expect(await client.incr('counter')).toBe(2);
    expect(fault.count).toBe(1);
  });

  test('consecutive faults strike consecutive commands', async () => {
    const client = connect({ maxRetriesPerRequest: null, retryStrategy: () => 1 });
    const faults = [proxy.cutBefore(incr), proxy.cutAfter(incr), proxy.cutAfter(incr)];
    expect(await client.incr('counter')).toBe(3);
    expect(faults.map(({ count }) => count)).toEqual([1, 1, 1]);
    expect(proxy.stats.commands.get('INCR')).toBe(4);
  });

  test('EVALSHA is selected by its hash, any command by an argument or a predicate', async () => {
    const client = connect();
    const [one, two] = (await Promise.all([
      client.script('LOAD', 'return 1'),
      client.script('LOAD', 'return 2'),
    ])) as string[];
    const bySha = proxy.observe({ sha: two ?? '' });
    const byArgument = proxy.observe({ contains: 'lock{x}', command: ['eval', 'evalsha'] });
    const byPredicate = proxy.observe({ where: ({ args }) => args.length === 4, times: Infinity });
    await client.evalsha(one ?? '', 0);
    expect([bySha.count, byArgument.count, byPredicate.count]).toEqual([0, 0, 0]);
    await client.evalsha(two ?? '', 0);
    await client.evalsha(one ?? '', 1, 'a lock{x}');
    await client.evalsha(one ?? '', 1, 'a lock{x}', 'b');
    expect([bySha.count, byArgument.count, byPredicate.count]).toEqual([1, 1, 1]);
  });
});

describe('replies', () => {
  test('swallow: the server executes the command, no reply arrives, and the connection stays open', async () => {
    const { socket, received } = await openSocket();
    const fault = proxy.swallow(incr);
    socket.write(Buffer.concat([request('PING'), request('INCR', 'counter'), request('ECHO', 'after')]));
    await fault.executed;
    const after = proxy.observe({ contains: 'marker' });
    socket.write(request('ECHO', 'marker'));
    await after.executed;
    expect(await counter()).toBe(1);
    expect(received()).toBe('+PONG\r\n');
    expect(socket.readable).toBe(true);
    expect(await connect().incr('counter')).toBe(2);
  });

  test('answer: the client gets the given reply and the server never sees the command', async () => {
    const client = connect();
    await client.ping();
    const fault = proxy.answer({ ...incr, times: 2 }, '-LOADING Redis is loading the dataset in memory\r\n');
    const outcomes = await Promise.allSettled([
      client.ping(),
      client.incr('counter'),
      client.echo('x'),
      client.incr('counter'),
    ]);
    expect(outcomes.map((outcome) => outcome.status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected']);
    expect(String((outcomes[1] as PromiseRejectedResult).reason)).toContain('LOADING');
    expect(await client.incr('counter')).toBe(1);
    expect(fault.count).toBe(2);
  });

  test('garble: the server executes the command and the client gets bytes that are no reply', async () => {
    const { socket, received } = await openSocket();
    const fault = proxy.garble(incr);
    socket.write(Buffer.concat([request('INCR', 'counter'), request('PING')]));
    await until(() => received().endsWith('+PONG\r\n'), 'the reply after it has come');
    expect(received()).toBe('\0garbage\r\n+PONG\r\n');
    expect(await counter()).toBe(1);
    expect(fault.count).toBe(1);
  });

  test('holdReply: the server executes the command, and its reply and later ones arrive when the fault is lifted', async () => {
    const client = connect();
    await client.ping();
    const fault = proxy.holdReply(incr);
    const order: string[] = [];
    const both = Promise.all([
      client.incr('counter').then(() => order.push('incr')),
      client.ping().then(() => order.push('ping')),
    ]);
    await fault.executed;
    expect(await counter()).toBe(1);
    expect(await connect().ping()).toBe('PONG');
    expect(order).toEqual([]);
    expect(fault.count).toBe(1);
    fault.lift();
    await both;
    expect(order).toEqual(['incr', 'ping']);
  });

  test('holdReply for a time delays the reply at least that long', async () => {
    const client = connect();
    await client.ping();
    proxy.holdReply(incr, 60);
    const start = performance.now();
    expect(await client.incr('counter')).toBe(1);
    expect(performance.now() - start).toBeGreaterThanOrEqual(60);
  });
});

describe('late delivery', () => {
  test('a held command is executed after its client has disconnected', async () => {
    const client = connect();
    await client.ping();
    const fault = proxy.holdCommand(incr);
    const outcome = client.incr('counter').catch((error: unknown) => String(error));
    await fault.applied;
    client.disconnect();
    expect(await outcome).toContain('closed');
    expect(await server.admin.get('counter')).toBeNull();
    expect(proxy.stats.open).toBe(0);
    fault.lift();
    await fault.executed;
    expect(await counter()).toBe(1);
  });

  test('a held command is executed after the connection of its client was cut', async () => {
    const client = connect();
    await client.ping();
    const fault = proxy.holdCommand(incr);
    const outcome = client.incr('counter').catch((error: unknown) => String(error));
    await fault.applied;
    proxy.cut({ side: 'client' });
    expect(await outcome).toContain('closed');
    fault.lift();
    await fault.executed;
    expect(await counter()).toBe(1);
  });

  test('a held command waits for a server that was stopped in between', async () => {
    const client = connect();
    await client.ping();
    const fault = proxy.holdCommand(incr, 20);
    void client.incr('counter').catch(() => undefined);
    await fault.applied;
    client.disconnect();
    await server.clientPause(60_000, 'WRITE');
    await until(() => proxy.log.at(-1)?.deliveredAt !== undefined, 'the command has been delivered');
    await server.clientUnpause();
    await fault.executed;
    expect(await counter()).toBe(1);
  });

  test('a held command keeps the order of its connection and delays no other connection', async () => {
    const client = connect();
    await client.ping();
    const fault = proxy.holdCommand({ contains: 'first' });
    const both = Promise.all([client.rpush('list', 'first'), client.rpush('list', 'second')]);
    await fault.applied;
    expect(await connect().rpush('list', 'other')).toBe(1);
    fault.lift();
    await both;
    expect(await server.admin.lrange('list', 0, -1)).toEqual(['other', 'first', 'second']);
  });

  test('a command held for a time is executed no earlier, and a fault waits for its n-th match', async () => {
    const client = connect();
    proxy.holdCommand({ ...incr, nth: 2 }, 60);
    expect(await client.incr('counter')).toBe(1);
    const start = performance.now();
    expect(await client.incr('counter')).toBe(2);
    expect(performance.now() - start).toBeGreaterThanOrEqual(60);
  });

  test('commands that a cut drops are never executed', async () => {
    const client = connect();
    await client.ping();
    const fault = proxy.holdCommand(incr);
    void client.incr('counter').catch(() => undefined);
    await fault.applied;
    proxy.cut();
    fault.lift();
    expect(await connect().incr('counter')).toBe(1);
  });
});

describe('subscribers', () => {
  test('only the subscriber connection is cut, and a message of that moment is lost', async () => {
    const subscriber = connect({ retryStrategy: () => 1 });
    const publisher = connect();
    const messages: string[] = [];
    subscriber.on('message', (_channel: string, text: string) => messages.push(text));
    await subscriber.subscribe('channel');
    await publisher.ping();
    const back = proxy.holdCommand({ command: 'SUBSCRIBE' });
    expect(proxy.cut({ kind: 'subscriber' })).toBe(1);
    await back.applied;
    await until(async () => (await server.channels()).length === 0, 'the server has noticed');
    expect(await publisher.publish('channel', 'lost')).toBe(0);
    back.lift();
    await back.executed;
    expect(await publisher.publish('channel', 'heard')).toBe(1);
    await until(() => messages.length > 0, 'the second message has come');
    expect(messages).toEqual(['heard']);
  });

  test.each([2, 3] as const)('RESP%d: one message is dropped and later ones arrive', async (protocol) => {
    const subscriber = connect({ protocol });
    const messages: string[] = [];
    subscriber.on('message', (_channel: string, text: string) => messages.push(text));
    await subscriber.subscribe('channel', 'other');
    const fault = proxy.dropMessages({ channel: 'channel', nth: 2 });
    await server.admin.publish('other', 'aside');
    for (const text of ['one', 'two', 'three']) expect(await server.admin.publish('channel', text)).toBe(1);
    await server.admin.publish('other', 'end');
    await until(() => messages.includes('end'), 'the last message has come');
    expect(messages).toEqual(['aside', 'one', 'three', 'end']);
    expect(fault.count).toBe(1);
  });

  test('an unanswered SUBSCRIBE swallows all later replies of its connection', async () => {
    const { socket, received } = await openSocket();
    const fault = proxy.swallow({ command: 'SUBSCRIBE' });
    socket.write(request('SUBSCRIBE', 'a', 'b'));
    await fault.executed;
    expect(await server.admin.publish('b', 'message')).toBe(1);
    const after = proxy.observe({ command: 'PING' });
    socket.write(request('PING'));
    await after.executed;
    expect(received()).toBe('');
  });

  test('a SUBSCRIBE ends with the confirmation of its last channel', async () => {
    const { socket, received } = await openSocket();
    proxy.cutAfter({ command: 'SUBSCRIBE', nth: 2 });
    const closed = once(socket, 'close');
    socket.write(Buffer.concat([request('SUBSCRIBE', 'a', 'b'), request('SUBSCRIBE', 'c', 'd')]));
    await closed;
    expect(received().match(/\$1\r\n[a-d]/g)).toEqual(['$1\r\na', '$1\r\nb']);
  });

  test('the acknowledgement of a SUBSCRIBE is held while commands continue', async () => {
    const subscriber = connect();
    const publisher = connect();
    const fault = proxy.holdReply({ command: 'SUBSCRIBE' });
    let subscribed = false;
    const subscribing = subscriber.subscribe('channel').then(() => (subscribed = true));
    await fault.executed;
    expect(await publisher.publish('channel', 'early')).toBe(1);
    expect(subscribed).toBe(false);
    fault.lift();
    await subscribing;
  });
});

describe('whole connections', () => {
  test.each(['to-server', 'to-client'] as const)(
    'a stall %s lets nothing pass until it is lifted',
    async (direction) => {
      const client = connect();
      await client.ping();
      const fault = proxy.stall({ direction, connection: 1 });
      let answered = false;
      const answer = client.incr('counter').then(() => (answered = true));
      await fault.applied;
      const other = connect();
      if (direction === 'to-client') await until(async () => (await counter()) === 1, 'the server has executed it');
      expect(await other.get('counter')).toBe(direction === 'to-client' ? '1' : null);
      expect(answered).toBe(false);
      fault.lift();
      await answer;
      expect(await other.get('counter')).toBe('1');
    },
  );

  test('a stall of both directions holds a new connection in its handshake', async () => {
    const fault = proxy.stall();
    const client = connect();
    await fault.applied;
    expect(client.status).not.toBe('ready');
    fault.lift();
    expect(await client.ping()).toBe('PONG');
  });

  test('a delay is a lower bound in each direction and keeps the order', async () => {
    const client = connect();
    await client.ping();
    const there = proxy.delay(30, { direction: 'to-server' });
    const back = proxy.delay((seen) => (seen && 'bytes' in seen && seen.command?.name === 'INCR' ? 40 : 0), {
      direction: 'to-client',
    });
    const start = performance.now();
    const [incremented, echoed] = await Promise.all([client.incr('counter'), client.echo('x')]);
    expect([incremented, echoed]).toEqual([1, 'x']);
    expect(performance.now() - start).toBeGreaterThanOrEqual(70);
    there.lift();
    back.lift();
    const before = there.count;
    await client.ping();
    expect(there.count).toBe(before);
  });

  test('a throttled connection passes no more bytes than allowed', async () => {
    const client = connect();
    await client.ping();
    const fault = proxy.throttle(100_000, { direction: 'to-server' });
    const start = performance.now();
    expect(await client.set('key', 'x'.repeat(10_000))).toBe('OK');
    expect(performance.now() - start).toBeGreaterThanOrEqual(80);
    fault.lift();
    expect(await client.strlen('key')).toBe(10_000);
  });

  test('refuse reset: new connections are reset, old ones continue, and the fault ends after its number of times', async () => {
    const old = connect();
    await old.ping();
    const fault = proxy.refuse('reset', { times: 2 });
    const client = connect({ maxRetriesPerRequest: null, retryStrategy: () => 1 });
    expect(await old.ping()).toBe('PONG');
    expect(await client.ping()).toBe('PONG');
    expect(fault.count).toBe(2);
    expect(proxy.stats.accepted).toBe(4);
  });

  test('refuse hang: new connections are accepted without a reply', async () => {
    const fault = proxy.refuse('hang');
    const { socket, received } = await openSocket();
    socket.write(request('PING'));
    await fault.applied;
    fault.lift();
    expect(await connect().ping()).toBe('PONG');
    expect(received()).toBe('');
    expect(socket.readable).toBe(true);
    expect(proxy.stats.commands.get('PING')).toBe(1);
  });

  test('retarget sends new connections to another server', async () => {
    const other = await startServer();
    try {
      const client = connect({ maxRetriesPerRequest: null, retryStrategy: () => 1 });
      await client.set('where', 'first');
      proxy.retarget(other.address);
      proxy.cut();
      expect(await client.get('where')).toBeNull();
    } finally {
      await other.stop();
    }
  });

  test('a dead or missing server ends the client connection', async () => {
    const mortal = await startServer();
    const onward = await FaultProxy.start(mortal.address);
    try {
      const { socket } = await openSocket(onward.port);
      const closed = once(socket, 'close');
      socket.write(request('PING'));
      await once(socket, 'data');
      await mortal.kill9();
      await closed;
      const { socket: late } = await openSocket(onward.port);
      await once(late, 'close');
      await until(() => onward.stats.open === 0, 'the proxy has noticed');
    } finally {
      await onward.close();
      await mortal.stop();
    }
  });

  test('an opaque proxy passes bytes it cannot read, stalls and cuts them', async () => {
    const opaque = await FaultProxy.start(server.address, { opaque: true });
    try {
      const { socket, received } = await openSocket(opaque.port);
      const stall = opaque.stall({ direction: 'to-server' });
      socket.write(request('INCR', 'counter'));
      await stall.applied;
      expect(await server.admin.get('counter')).toBeNull();
      stall.lift();
      await until(() => received() === ':1\r\n', 'the reply has come');
      expect(opaque.stats.commands.size).toBe(0);
      const closed = once(socket, 'close');
      expect(opaque.cut()).toBe(1);
      await closed;
    } finally {
      await opaque.close();
    }
  });
});

describe('the proxy itself', () => {
  test('lift releases everything that is held, also by faults without further matches', async () => {
    const client = connect();
    await client.ping();
    const held = proxy.holdCommand(incr);
    const stall = proxy.stall({ direction: 'to-client' });
    const refusal = proxy.refuse('hang');
    const cut = proxy.cutBefore({ command: 'SET' });
    const answer = client.incr('counter');
    await held.applied;
    proxy.observe(incr);
    proxy.lift();
    expect(await answer).toBe(1);
    expect(await client.set('key', 1)).toBe('OK');
    expect(await connect().ping()).toBe('PONG');
    expect([held, stall, refusal, cut].map(({ active }) => active)).toEqual([false, false, false, false]);
  });

  test('close ends every connection and rejects waits for faults that never struck', async () => {
    const own = await FaultProxy.start(server.address);
    const { port } = own;
    const { socket } = await openSocket(port);
    const fault = own.holdCommand(incr);
    const never = own.cutAfter({ command: 'NEVER' });
    const closed = once(socket, 'close');
    socket.write(request('INCR', 'counter'));
    await fault.applied;
    await own.close();
    await closed;
    await expect(never.applied).rejects.toThrow('cut-after');
    expect(await server.admin.get('counter')).toBeNull();
    await expect(openSocket(port)).rejects.toThrow();
  });

  test('the log keeps no more commands than its limit', async () => {
    const own = await FaultProxy.start(server.address, { logLimit: 3 });
    try {
      const { socket, received } = await openSocket(own.port);
      socket.write(Buffer.concat(['1', '2', '3', '4', '5'].map((text) => request('ECHO', text))));
      await until(() => received().includes('5'), 'all are answered');
      expect(own.log.map(({ args }) => args[0])).toEqual(['3', '4', '5']);
    } finally {
      await own.close();
    }
  });
});
