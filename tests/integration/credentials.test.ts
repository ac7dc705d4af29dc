import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { inspect } from 'node:util';
import { Redis } from 'ioredis';
import * as nodeRedis from 'redis';
import { createClient, type CreateClientOptions, type LockClient } from '../../src/client/create-client.js';
import type { Credentials } from '../../src/options.js';
import { inFlow, pause } from '../support/clients/lock-clients.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { LONG_QUIET_MS, PARKED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

const opened: LockClient[] = [];
let user: string;
const other = (): string => `${user}-2`;

beforeEach(async () => {
  user = freshName('user').replace(/\W/g, '-');
  await setPassword('first');
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((client) => client.close({ releaseHolds: true })));
  await admin().call('ACL', 'DELUSER', user, other());
});

async function setPassword(password: string, name = user): Promise<void> {
  await admin().call('ACL', 'SETUSER', name, 'reset', 'on', `>${password}`, '+@all', '~*', '&*');
}

/** The server closes the connections of the user. */
const cut = (): Promise<unknown> => admin().call('CLIENT', 'KILL', 'USER', user);

function open(options: Partial<CreateClientOptions>): LockClient {
  const client = createClient({ url: testRedisUrl(), ...options } as CreateClientOptions);
  opened.push(client);
  return client;
}

/** The connections of the client at the server: the id of each, and its user. */
async function connectionsOf(client: LockClient): Promise<Map<string, string>> {
  const lines = String(await admin().call('CLIENT', 'LIST')).split('\n');
  const own = lines.filter((line) => line.includes(`name=holdfast:${client.id}:`));
  return new Map(own.map((line) => [/\bid=(\d+)/.exec(line)![1]!, /\buser=(\S+)/.exec(line)![1]!]));
}

function throwIt(error: Error): never {
  throw error;
}

/** A section, and one that waits for a message. */
async function use(client: LockClient): Promise<void> {
  const lock = client.getLock(freshName());
  const hold = await inFlow(() => lock.acquire({ waitTime: 5_000 }));
  const waiting = inFlow(() => lock.acquire({ waitTime: 5_000 }));
  await pause(PARKED_MS);
  await hold.release();
  await (await waiting).release();
}

describe('credentials', () => {
  test('are asked before each connection is opened, and a change is used from then on', async () => {
    let password = 'first';
    const credentials = jest.fn(async () => ({ username: user, password }));
    const client = open({ credentials });
    await use(client);
    const before = await connectionsOf(client);
    expect([...before.values()]).toEqual([...before.values()].map(() => user));
    expect(credentials).toHaveBeenCalledTimes(before.size);
    password = 'second';
    await setPassword(password);
    await cut();
    await use(client);
    await until(async () => (await connectionsOf(client)).size === before.size, 'all connections are back');
    const after = await connectionsOf(client);
    expect([...after.keys()].filter((id) => before.has(id))).toEqual([]);
    expect(credentials).toHaveBeenCalledTimes(2 * before.size);
  });

  test('that end are renewed before, in place, and a subscribed connection is opened anew', async () => {
    await setPassword('other', other());
    const [first, second] = [
      { username: user, password: 'first', expiresIn: 1_000 },
      { username: other(), password: 'other' },
    ];
    let now: Credentials = first;
    const client = open({ credentials: () => now });
    const errors: unknown[] = [];
    client.events.on('connectionError', ({ cause }) => errors.push(cause));
    const lock = client.getLock(freshName());
    const hold = await inFlow(() => lock.acquire());
    const waiting = inFlow(() => lock.acquire({ waitTime: 20_000 }));
    await until(async () => (await connectionsOf(client)).size === 2, 'the call waits for a message');
    const before = await connectionsOf(client);
    now = second;
    await until(
      async () => [...(await connectionsOf(client)).values()].join() === `${other()},${other()}`,
      'all connections are of the other user',
    );
    const after = await connectionsOf(client);
    expect([...after.keys()].filter((id) => before.has(id))).toHaveLength(1);
    await hold.release();
    await (await waiting).release();
    expect(errors).toEqual([]);
  });

  test('that a function fails to return are an error of the connection with its cause, and the client asks again', async () => {
    const trouble = new Error('the secret store is away');
    let fails = true;
    const client = open({
      commandTimeout: 400,
      credentials: async () => {
        if (fails) throw trouble;
        return { username: user, password: 'first' };
      },
    });
    const errors: unknown[] = [];
    client.events.on('connectionError', ({ cause }) => errors.push(cause));
    await expect(client.ready()).rejects.toMatchObject({
      code: 'ERR_LOCK_REDIS_UNAVAILABLE',
      message: expect.stringMatching(/: the secret store is away$/),
    });
    expect(errors).toContainEqual(expect.objectContaining({ cause: trouble }));
    const waiting = client.getLock(freshName()).withLock({ waitTime: 10_000 }, () => 'inside');
    fails = false;
    expect(await waiting).toBe('inside');
  });

  test('that cannot be renewed are reported and asked for again, and the connection stays', async () => {
    let asked = 0;
    const client = open({
      credentials: () => {
        asked += 1;
        if (asked === 2) throw new Error('the secret store is away');
        return { username: user, password: asked === 3 ? 'mistaken' : 'first', ...(asked < 4 && { expiresIn: 300 }) };
      },
    });
    const errors: unknown[] = [];
    client.events.on('connectionError', ({ cause }) => errors.push(cause));
    await client.ready();
    const before = await connectionsOf(client);
    await until(() => asked === 4, 'the client has asked again');
    expect(await connectionsOf(client)).toEqual(before);
    await use(client);
    expect(errors.map((error) => String((error as Error).cause))).toEqual([
      expect.stringContaining('the secret store is away'),
      expect.stringContaining('WRONGPASS'),
    ]);
    expect(inspect(errors, { depth: 10, showHidden: true })).not.toContain('mistaken');
  });

  test('that the server rejects may be right the next time: a call waits for them, and is refused at its deadline', async () => {
    let password = 'mistaken';
    const client = open({ commandTimeout: 600, credentials: async () => ({ username: user, password }) });
    const error: unknown = await client.ready().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'ERR_LOCK_REFUSED' });
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('mistaken');
    const waiting = client.ready();
    password = 'first';
    await waiting;
  });

  test('that never come end no later than the call, and close() does not wait for them', async () => {
    const client = open({ commandTimeout: 300, credentials: () => new Promise<Credentials>(() => undefined) });
    await expect(client.ready()).rejects.toMatchObject({ code: 'ERR_LOCK_REDIS_UNAVAILABLE' });
    await client.close();
  });

  test('that come after close() open no connection', async () => {
    let answer!: (credentials: Credentials) => void;
    const client = open({ credentials: () => new Promise<Credentials>((resolve) => (answer = resolve)) });
    const waiting = client.ready().catch(() => undefined);
    await until(() => answer !== undefined, 'the client asks');
    await client.close();
    await waiting;
    answer({ username: user, password: 'first' });
    await new Promise((resume) => setTimeout(resume, LONG_QUIET_MS));
    expect((await connectionsOf(client)).size).toBe(0);
  });

  test.each(['geheim', 42, {}])('that are no function (%p) are refused, without a word of the value', (given) => {
    const options = { url: testRedisUrl(), credentials: given } as unknown as CreateClientOptions;
    let error: unknown;
    try {
      opened.push(createClient(options));
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toMatchObject({ code: 'ERR_LOCK_INVALID_ARGUMENT', argument: 'credentials' });
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('geheim');
  });

  test.each([undefined, 'a word', { username: 'me' }, { password: 1 }, { password: 'x', expiresIn: 0 }])(
    'an answer that is wrong (%p) is an error of the connection',
    async (answer) => {
      const client = open({ commandTimeout: 300, credentials: () => answer as unknown as Credentials });
      await expect(client.ready()).rejects.toMatchObject({
        code: 'ERR_LOCK_REDIS_UNAVAILABLE',
        message: expect.stringMatching(/credentials must be \{ username\?: string, password: string/),
      });
    },
  );
});

test('a changed password in the options of a given connection is used for each new connection', async () => {
  const redis = new Redis(testRedisUrl(), { username: user, password: 'first', lazyConnect: true });
  const client = open({ url: undefined, redis });
  await use(client);
  await setPassword('second');
  redis.options.password = 'second';
  await cut();
  await use(client);
  expect([...(await connectionsOf(client)).values()]).toContain(user);
});

describe('a credentialsProvider of the package redis', () => {
  const given = (credentialsProvider: object): Partial<CreateClientOptions> => {
    const { hostname, port, pathname } = new URL(testRedisUrl());
    const options = {
      socket: { host: hostname, port: Number(port) },
      database: Number(pathname.slice(1)),
      credentialsProvider,
    } as nodeRedis.RedisClientOptions;
    return { url: undefined, redis: nodeRedis.createClient(options) };
  };

  test('that answers is asked for each connection', async () => {
    let password = 'first';
    const credentials = jest.fn(async () => ({ username: user, password }));
    const client = open(given({ type: 'async-credentials-provider', credentials }));
    await use(client);
    password = 'second';
    await setPassword(password);
    await cut();
    await use(client);
    expect(credentials.mock.calls.length).toBeGreaterThan(2);
  });

  test('that tells changes is listened to as long as a connection is open', async () => {
    await setPassword('other', other());
    type Next = { username: string; password: string };
    const listeners = new Set<{ onNext(next: Next): void; onError(error: Error): void }>();
    const rejected: Error[] = [];
    const client = open(
      given({
        type: 'streaming-credentials-provider',
        subscribe: async (listener: { onNext(next: Next): void; onError(error: Error): void }) => {
          listeners.add(listener);
          return [{ username: user, password: 'first' }, { dispose: () => listeners.delete(listener) }];
        },
        onReAuthenticationError: (error: Error) => rejected.push(error),
      }),
    );
    await client.ready();
    const before = await connectionsOf(client);
    expect(listeners.size).toBe(before.size);
    for (const { onNext } of listeners) onNext({ username: other(), password: 'other' });
    await until(
      async () => [...(await connectionsOf(client)).values()].join() === other(),
      'the user is the other one',
    );
    expect([...(await connectionsOf(client)).keys()]).toEqual([...before.keys()]);
    for (const { onNext } of listeners) onNext({ username: other(), password: 'mistaken' });
    await until(() => rejected.length === 1, 'the provider learns that the server rejects its password');
    await client.close();
    expect(listeners.size).toBe(0);
  });

  test('that tells a change before it answers is believed: the change is newer', async () => {
    const client = open(
      given({
        type: 'streaming-credentials-provider',
        subscribe: async ({ onNext }: { onNext(next: object): void }) => {
          onNext({ username: user, password: 'first' });
          return [{ username: user, password: 'outdated' }, { dispose: () => undefined }];
        },
        onReAuthenticationError: () => undefined,
      }),
    );
    await client.ready();
    await use(client);
  });

  test.each([
    ['throws', (error: Error): void => void throwIt(error)],
    ['rejects', (error: Error): unknown => Promise.reject(error)],
  ])('that %s when it is told an error or is disposed of, is an error of the connection', async (_, fail) => {
    type Listener = { onNext(next: object): void };
    const listeners: Listener[] = [];
    const client = open(
      given({
        type: 'streaming-credentials-provider',
        subscribe: async (listener: Listener) => {
          listeners.push(listener);
          return [{ username: user, password: 'first' }, { dispose: () => fail(new Error('in dispose')) }];
        },
        onReAuthenticationError: () => fail(new Error('in onReAuthenticationError')),
      }),
    );
    const causes: string[] = [];
    client.events.on('connectionError', ({ cause }) => causes.push(String((cause as Error).cause)));
    await client.ready();
    listeners[0]!.onNext({ username: user, password: 'mistaken' });
    await until(() => causes.includes('Error: in onReAuthenticationError'), 'the error is reported');
    await cut();
    await until(() => causes.includes('Error: in dispose'), 'the error is reported');
    await use(client);
    await client.close();
  });

  test('that answers with nothing is an error of the connection', async () => {
    const subscribe = async (): Promise<unknown> => [undefined, { dispose: () => undefined }];
    const type = 'streaming-credentials-provider';
    const client = open({
      ...given({ type, subscribe, onReAuthenticationError: () => undefined }),
      commandTimeout: 300,
    });
    const errors: unknown[] = [];
    client.events.on('connectionError', ({ cause }) => errors.push(cause));
    await expect(client.ready()).rejects.toMatchObject({ code: 'ERR_LOCK_REDIS_UNAVAILABLE' });
    expect(String(errors[0])).toContain('there are no credentials for the connection');
  });
});
