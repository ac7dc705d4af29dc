import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { connect } from 'node:http2';
import { Readable } from 'node:stream';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest, type RouteOptions } from 'fastify';
import { lockName, type LockClient } from '../../../src/index.js';
import {
  holdfastFastify,
  requestLock,
  type FastifyRouteLock,
  type RequestLock,
} from '../../../src/integrations/fastify/index.js';
import { closeClients, holdElsewhere, openClient, outcome, pause } from '../../support/clients/lock-clients.js';
import { send } from '../../support/http/http-client.js';
import { freshName, testRedisUrl } from '../../support/redis.js';
import { QUIET_MS } from '../../support/time/pauses.js';
import { until } from '../../support/time/until.js';
import { expectAtMost } from '../../support/serious.js';

let client: LockClient;
let key: string;
const apps: FastifyInstance[] = [];

beforeEach(async () => {
  client = await openClient();
  key = freshName();
});
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
  await closeClients();
});

const isFree = async (): Promise<boolean> => !(await client.getLock(key).isLocked());
const free = (): Promise<void> => until(isFree, 'the lock is free');
const never = (): void => undefined;

/** An application with the plugin, whose server closes its connections when it closes. */
async function application(): Promise<FastifyInstance> {
  const app = fastify({ forceCloseConnections: true });
  apps.push(app);
  await app.register(holdfastFastify, { client });
  return app;
}

type Handler = (request: FastifyRequest, reply: FastifyReply) => unknown;

/** The URL of an application with one locked route, `POST /`. */
async function served(handler: Handler, lock: Partial<FastifyRouteLock> = {}): Promise<string> {
  const app = await application();
  app.post('/', { config: { lock: { key, ...lock } } }, handler);
  return app.listen();
}

test('a request holds the lock until its reply is sent', async () => {
  const url = await served(async () => ({ free: await isFree() }));
  expect(await send(url).answer).toMatchObject({ status: 200, text: '{"free":false}' });
  await free();
});

test('requests of one key run one after the other', async () => {
  let inside = 0;
  let most = 0;
  const url = await served(
    async () => {
      most = Math.max(most, ++inside);
      await pause();
      inside -= 1;
      return 'done';
    },
    { waitTime: 10_000 },
  );
  const answers = await Promise.all(Array.from({ length: 5 }, () => send(url).answer));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expectAtMost(most);
  expect(most).toBe(1);
  await free();
});

test('the handler is inside the hold, whether it is async or sends its reply later', async () => {
  const app = await application();
  const config = { lock: { key, waitTime: 10_000 } };
  const nested = (): Promise<number> =>
    app.locks.getLock(key).withLock({ waitTime: 0 }, () => app.locks.getLock(key).getHoldCount());
  app.post('/async', { config }, async () => String(await nested()));
  app.post('/later', { config }, (_request, reply) => {
    setImmediate(() => void nested().then((count) => reply.send(String(count))));
  });
  const url = await app.listen();
  expect((await send(`${url}/async`, { json: { with: 'a body' } }).answer).text).toBe('2');
  expect((await send(`${url}/later`).answer).text).toBe('2');
  await free();
});

test('a name of lockName is a key, and gives the lock its group', async () => {
  const app = await application();
  const groups: unknown[] = [];
  client.events.on('acquired', ({ group }) => groups.push(group));
  app.post('/one', { config: { lock: { key: lockName`${key}:one` } } }, async () => 'done');
  app.post('/two', { config: { lock: { key: () => lockName`order:${key}` } } }, async () => 'done');
  const url = await app.listen();
  for (const path of ['one', 'two']) expect((await send(`${url}/${path}`).answer).status).toBe(200);
  expect(groups).toEqual(['{}:one', 'order:{}']);
  await until(() => client.holds().length === 0, 'the locks are free');
});

test('the lock is taken after every preHandler, and a request that a hook refuses takes none', async () => {
  const app = await application();
  const seen: string[] = [];
  const look = (hook: string) => async (): Promise<void> => {
    seen.push(`${hook} ${(await isFree()) ? 'free' : 'held'}`);
  };
  app.addHook('preHandler', look('of the application'));
  app.post<{ Params: { id: string } }>(
    '/:id',
    {
      config: {
        lock: {
          key: ({ params }: FastifyRequest<{ Params: { id: string } }>) => (seen.push(`key of ${params.id}`), key),
        },
      },
      preHandler: [
        look('of the route'),
        async ({ params }) => {
          if (params.id === 'secret') throw Object.assign(new Error('refused'), { statusCode: 401 });
        },
      ],
      onSend: look('onSend'),
    },
    async () => look('handler')(),
  );
  const url = await app.listen();
  expect((await send(`${url}/7`).answer).status).toBe(200);
  expect(seen.splice(0)).toEqual([
    'of the application free',
    'of the route free',
    'key of 7',
    'handler held',
    'onSend held',
  ]);
  await free();
  expect((await send(`${url}/secret`).answer).status).toBe(401);
  expect(seen).toEqual(['of the application free', 'of the route free', 'onSend free']);
});

test('a GET route and its HEAD route take the lock once each', async () => {
  const app = await application();
  const counts: number[] = [];
  app.get('/', { config: { lock: { key, waitTime: 10_000 } } }, async () => {
    counts.push(await client.getLock(key).getHoldCount());
    return 'done';
  });
  const url = await app.listen();
  await send(url, { method: 'GET' }).answer;
  await send(url, { method: 'HEAD' }).answer;
  expect(counts).toEqual([1, 1]);
  await free();
});

test('a route that is given the config or the options of another route holds the lock that its config names', async () => {
  const app = await application();
  const defined: RouteOptions[] = [];
  app.addHook('onRoute', (route) => void defined.push(route));
  const handler: Handler = async (request) => requestLock(request.raw)?.hold.lockName ?? 'none';
  app.post('/', { config: { lock: { key } } }, handler as () => Promise<string>);
  const [first] = defined as [RouteOptions];
  app.route({ method: 'POST', url: '/config', config: first.config!, handler: handler });
  app.route({ ...first, url: '/options' });
  const lock = { key: `${key}:other` };
  app.route({ ...first, url: '/other', config: { lock } });
  const url = await app.listen();
  const counts: number[] = [];
  client.events.on('acquired', ({ holdCount }) => counts.push(holdCount));
  for (const path of ['', '/config', '/options']) {
    expect([path, (await send(url + path).answer).text]).toEqual([path, key]);
    await free();
  }
  expect((await send(`${url}/other`).answer).text).toBe(lock.key);
  await until(() => client.holds().length === 0, 'the locks are free');
  expect(counts).toEqual([1, 1, 1, 1]);
});

test('a route of another scope has no lock and no app.locks, and a scope inside has both', async () => {
  const app = fastify({ forceCloseConnections: true });
  apps.push(app);
  const config = { lock: { key } };
  await app.register(async (scope) => {
    await scope.register(holdfastFastify, { client });
    await scope.register(async (inner) => {
      inner.post('/inside', { config }, async () => ({ free: await isFree(), locks: inner.locks === client }));
    });
  });
  app.post('/beside', { config }, async () => ({ free: await isFree(), locks: 'locks' in app }));
  const url = await app.listen();
  expect((await send(`${url}/inside`).answer).text).toBe('{"free":false,"locks":true}');
  await free();
  expect((await send(`${url}/beside`).answer).text).toBe('{"free":true,"locks":false}');
});

test('a request of a locked route that was defined before the plugin was loaded is refused', async () => {
  const app = fastify({ forceCloseConnections: true });
  apps.push(app);
  void app.register(holdfastFastify, { client });
  const handler = jest.fn(async () => 'done');
  app.post('/', { config: { lock: { key } } }, handler);
  const { status, text } = await send(await app.listen()).answer;
  expect(status).toBe(500);
  expect(text).toContain('was defined before the plugin holdfast was loaded; await app.register()');
  expect(handler).not.toHaveBeenCalled();
});

test('a request for which `when` is false runs without the lock', async () => {
  const url = await served(async () => ({ free: await isFree() }), { when: async () => false });
  expect((await send(url).answer).text).toBe('{"free":true}');
});

describe('a busy lock', () => {
  test('gives 423 and Retry-After through the error handler of Fastify, and does not name the lock', async () => {
    const hold = await holdElsewhere(client.getLock(key));
    const url = await served(never);
    const { status, headers, text } = await send(url).answer;
    expect([status, headers['retry-after']]).toEqual([423, '1']);
    expect(JSON.parse(text)).toEqual({
      statusCode: 423,
      code: 'ERR_LOCK_TIMEOUT',
      error: 'Locked',
      message: 'another request holds the lock of this resource; try again in 1 s',
    });
    await hold.release();
  });

  test.each<[string, FastifyRouteLock['onBusy']]>([
    ['returns', async (busy) => ({ busy: busy.lockName })],
    ['sends', (busy, _request, reply) => reply.send({ busy: busy.lockName })],
  ])('is answered by what onBusy %s', async (_title, onBusy) => {
    const hold = await holdElsewhere(client.getLock(key));
    const url = await served(never, { onBusy, waitTime: 1 });
    expect(await send(url).answer).toMatchObject({ status: 200, text: JSON.stringify({ busy: key }) });
    await hold.release();
  });

  test('whose onBusy throws gives that error', async () => {
    const hold = await holdElsewhere(client.getLock(key));
    const url = await served(never, {
      onBusy: () => {
        throw Object.assign(new Error('come back tomorrow'), { statusCode: 503 });
      },
    });
    expect((await send(url).answer).status).toBe(503);
    await hold.release();
  });
});

describe('the lock is released', () => {
  test('when the handler throws', async () => {
    const url = await served(async () => {
      throw new Error('the handler failed');
    });
    expect((await send(url).answer).status).toBe(500);
    await free();
  });

  test('when the client disconnects from a handler that never answers', async () => {
    const seen: RequestLock[] = [];
    const url = await served((request) => void seen.push(requestLock(request.raw)!));
    const sent = send(url);
    await until(() => seen.length === 1, 'the handler runs');
    expect([await isFree(), seen[0]!.signal.aborted]).toEqual([false, false]);
    sent.disconnect();
    await free();
    expect(seen[0]!.signal.aborted).toBe(true);
  });

  test('when a stream has ended, and not before', async () => {
    let finish: () => void = never;
    async function* parts(): AsyncGenerator<string> {
      yield 'first';
      await new Promise<void>((resolve) => (finish = resolve));
      yield ' second';
    }
    const url = await served((_request, reply) => reply.send(Readable.from(parts())));
    const sent = send(url);
    expect(await sent.firstPart).toBe('first');
    await pause(QUIET_MS);
    expect(await isFree()).toBe(false);
    finish();
    expect((await sent.answer).text).toBe('first second');
    await free();
  });

  test('when the client disconnects in the middle of a stream', async () => {
    async function* parts(): AsyncGenerator<string> {
      for (;;) {
        yield 'part';
        await pause(1);
      }
    }
    const url = await served((_request, reply) => reply.send(Readable.from(parts())));
    const sent = send(url);
    await sent.firstPart;
    expect(await isFree()).toBe(false);
    sent.disconnect();
    await free();
  });

  test('when a hijacked reply has ended', async () => {
    const url = await served((_request, reply) => {
      reply.hijack();
      reply.raw.end('by hand');
    });
    expect((await send(url).answer).text).toBe('by hand');
    await free();
  });

  test('when a stream of HTTP/2 has ended, or was cancelled', async () => {
    const app = fastify({ http2: true });
    await app.register(holdfastFastify as never, { client });
    const seen: string[] = [];
    app.get('/', { config: { lock: { key, waitTime: 10_000 } } }, (_request, reply) => {
      seen.push('inside');
      if (seen.length === 1) reply.send('done');
    });
    const session = connect(await app.listen());
    const first = session.request({ ':path': '/' });
    first.resume();
    await until(() => first.closed, 'the stream has ended');
    await free();
    const second = session.request({ ':path': '/' });
    await until(() => seen.length === 2, 'the second request is inside');
    expect(await isFree()).toBe(false);
    second.close();
    await free();
    session.destroy();
    await app.close();
  });
});

test('a client that disconnects while its request waits ends the wait, and the handler never runs', async () => {
  const hold = await holdElsewhere(client.getLock(key));
  const { waits } = client.stats();
  const handler = jest.fn(never);
  const url = await served(handler, { waitTime: 60_000 });
  const sent = send(url);
  await until(() => client.stats().waits === waits + 1, 'the request waits');
  sent.disconnect();
  await until(() => client.stats().waiting === 0, 'the request has left the line');
  await hold.release();
  await free();
  expect(handler).not.toHaveBeenCalled();
});

describe('the client', () => {
  test('of the plugin is closed in onClose, after the requests of the server', async () => {
    const app = fastify();
    await app.register(holdfastFastify, { url: testRedisUrl(), close: { releaseHolds: true } });
    const { locks } = app;
    let answer: () => void = never;
    app.post('/', { config: { lock: { key } } }, async () => {
      await new Promise<void>((resolve) => (answer = resolve));
      return locks.getLock(key).withLock({ waitTime: 0 }, () => 'nested');
    });
    const sent = send(await app.listen());
    await until(() => answer !== never, 'the handler runs');
    const closed = app.close();
    await pause(QUIET_MS);
    answer();
    expect(await sent.answer).toMatchObject({ status: 200, text: 'nested' });
    await closed;
    expect(await outcome(locks.ready())).toBe('ERR_LOCK_CLIENT_CLOSED');
    await free();
  });

  test('of the plugin drains before it closes: a section without a request ends with its lock', async () => {
    const app = fastify();
    await app.register(holdfastFastify, { url: testRedisUrl(), close: { drain: 60_000, releaseHolds: true } });
    const { locks } = app;
    const hold = await holdElsewhere(locks.getLock(key));
    const closed = app.close();
    await until(async () => (await outcome(locks.getLock(key).acquire())) === 'ERR_LOCK_CLIENT_CLOSED', 'it drains');
    expect(hold.signal.aborted).toBe(false);
    await hold.release();
    await closed;
    await free();
  });

  test('of the application stays open', async () => {
    const app = await application();
    expect(app.locks).toBe(client);
    await app.close();
    expect(await outcome(client.ready())).toBe('ok');
  });
});

test.each<[string, unknown]>([
  ['client', { client: 'redis://127.0.0.1' }],
  ['url', {}],
])('a bad %s rejects the registration', async (argument, options) => {
  const app = fastify();
  await expect(app.register(holdfastFastify, options as never)).rejects.toMatchObject({
    code: 'ERR_LOCK_INVALID_ARGUMENT',
    argument,
  });
});

test('a bad config.lock is refused at the definition of the route', async () => {
  const app = await application();
  const route = (lock: unknown) => () => app.post('/', { config: { lock: lock as FastifyRouteLock } }, never);
  expect(route('order')).toThrow('config.lock must be an object with a key, not "order"');
  expect(route({ key, waitTme: 5 })).toThrow('unknown option "waitTme"');
});
