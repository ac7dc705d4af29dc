import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Agent } from 'node:http';
import { createRequire } from 'node:module';
import { pipeline } from 'node:stream/promises';
import express5, { type ErrorRequestHandler, type Express, type Request } from 'express';
import { lockName, type LockClient } from '../../../src/index.js';
import {
  lockRequest,
  requestLock,
  type LockRequestOptions,
  type RequestLock,
} from '../../../src/integrations/express/index.js';
import { closeClients, holdElsewhere, openClient, openProxy, pause } from '../../support/clients/lock-clients.js';
import { send } from '../../support/http/http-client.js';
import { closeServers, serve } from '../../support/http/http-server.js';
import { freshName } from '../../support/redis.js';
import { until } from '../../support/time/until.js';
import { QUIET_MS } from '../../support/time/pauses.js';
import { expectAtMost } from '../../support/serious.js';

const require = createRequire(import.meta.url);

let client: LockClient;
let key: string;

beforeEach(async () => {
  client = await openClient();
  key = freshName();
});
afterEach(async () => {
  await closeServers();
  await closeClients();
});

const isFree = (name = key): Promise<boolean> =>
  client
    .getLock(name)
    .isLocked()
    .then((locked) => !locked);
const free = (name = key): Promise<void> => until(() => isFree(name), 'the lock is free');
const held = (name = key): Promise<void> => until(async () => !(await isFree(name)), 'the lock is held');

const never = (): void => undefined;

describe.each([
  ['Express 5', express5],
  ['Express 4', require('express-4') as typeof express5],
])('%s', (_version, express) => {
  /** An application with one locked route, `POST /:id`. */
  function application(
    handler: (request: Request, response: express5.Response, next: express5.NextFunction) => unknown,
    options: Partial<LockRequestOptions> = {},
  ): Express {
    const app = express();
    app.post('/:id', lockRequest({ client, key, ...options }), handler);
    return app;
  }

  test('a request holds the lock until its response is sent', async () => {
    let locked: boolean | undefined;
    const url = await serve(
      application(async (_request, response) => {
        locked = !(await isFree());
        response.send('done');
      }),
    );
    expect(await send(`${url}/1`).answer).toMatchObject({ status: 200, text: 'done' });
    expect(locked).toBe(true);
    await free();
  });

  test('requests of one key run one after the other', async () => {
    let inside = 0;
    let most = 0;
    const url = await serve(
      application(
        async (_request, response) => {
          most = Math.max(most, ++inside);
          await pause();
          inside -= 1;
          response.end();
        },
        { waitTime: 10_000 },
      ),
    );
    const answers = await Promise.all(Array.from({ length: 5 }, () => send(`${url}/1`).answer));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expectAtMost(most);
    expect(most).toBe(1);
    await free();
  });

  test('the handler and the parsers before it run inside the hold, and nested calls re-enter', async () => {
    const app = express();
    app.use(lockRequest({ client, key }), express.json());
    app.post('/', async (request, response) => {
      const lock = client.getLock(key);
      const { context, hold } = requestLock(request)!;
      const byFlow = await lock.withLock({ waitTime: 0 }, ({ owner }) => owner === hold.owner);
      const byContext = await lock.withLock({ waitTime: 0, context }, ({ owner }) => owner === hold.owner);
      response.json([byFlow, byContext, request.body]);
    });
    const url = await serve(app);
    const { text } = await send(url, { json: { amount: 7 } }).answer;
    expect(JSON.parse(text)).toEqual([true, true, { amount: 7 }]);
    await free();
  });

  test('two middlewares of one key re-enter, and each releases its hold', async () => {
    const app = express();
    app.use(lockRequest({ client, key }));
    app.post('/', lockRequest({ client, key }), async (_request, response) => {
      response.send(String(await client.getLock(key).getHoldCount()));
    });
    const url = await serve(app);
    expect(await send(url).answer).toMatchObject({ status: 200, text: '2' });
    await free();
  });

  test('a name of lockName is a key, and gives the lock its group', async () => {
    const app = express();
    const groups: unknown[] = [];
    client.events.on('acquired', ({ group }) => groups.push(group));
    app.post('/:id', lockRequest({ client, key: lockName`${key}:all` }));
    app.post(
      '/:id',
      lockRequest<{ id: string }>({ client, key: ({ params: { id } }) => lockName`order:${id}/${key}` }),
    );
    app.post('/:id', (request, response) => response.send(requestLock(request)!.hold.lockName));
    expect((await send(`${await serve(app)}/7`).answer).text).toBe(`order:7/${key}`);
    expect(groups).toEqual(['{}:all', 'order:{}/{}']);
    await free(`order:7/${key}`);
    await free(`${key}:all`);
  });

  test('the key comes from the request, and other keys are not locked', async () => {
    const app = express();
    const names: string[] = [];
    app.post(
      '/:id',
      lockRequest({ client, key: async (request) => [`${key}:${request.params.id as string}`, `${key}:all`] }),
      async (request, response) => {
        names.push(requestLock(request)!.hold.lockName);
        response.send(String(await isFree(`${key}:2`)));
      },
    );
    const url = await serve(app);
    expect(await send(`${url}/1`).answer).toMatchObject({ status: 200, text: 'true' });
    expect(names).toEqual([`${key}:1, ${key}:all`]);
    await free(`${key}:1`);
    await free(`${key}:all`);
  });

  test('readers share a read lock, and a writer finds it busy', async () => {
    const app = express();
    let readers = 0;
    app.get('/', lockRequest({ client, key, kind: 'read' }), async (_request, response) => {
      readers += 1;
      await until(() => readers === 2, 'both readers are inside');
      await until(() => answers.length === 1, 'the writer has its answer');
      response.end();
    });
    app.post('/', lockRequest({ client, key, kind: 'write' }), (_request, response) => response.end());
    const answers: number[] = [];
    const url = await serve(app);
    const reads = [send(url, { method: 'GET' }), send(url, { method: 'GET' })];
    await until(() => readers === 2, 'both readers are inside');
    answers.push((await send(url).answer).status);
    expect(answers).toEqual([423]);
    await Promise.all(reads.map(({ answer }) => answer));
    await free();
  });

  test('a request for which `when` is false runs without the lock', async () => {
    const url = await serve(
      application(async (_request, response) => response.send(String(await isFree())), {
        when: (request) => request.params.id === 'locked',
      }),
    );
    expect((await send(`${url}/open`).answer).text).toBe('true');
    expect((await send(`${url}/locked`).answer).text).toBe('false');
    await free();
  });

  describe('a busy lock', () => {
    test('gives 423 and Retry-After through the error handling of Express, and does not name the lock', async () => {
      const hold = await holdElsewhere(client.getLock(key));
      const handler = jest.fn(never);
      const app = application(handler);
      const errors: unknown[] = [];
      const watch: ErrorRequestHandler = (error, _request, _response, next) => {
        errors.push(error);
        next(error);
      };
      app.use(watch);
      const url = await serve(app);
      const { status, headers, text } = await send(`${url}/1`).answer;
      expect([status, headers['retry-after']]).toEqual([423, '1']);
      expect(text).not.toContain(key);
      expect(errors).toEqual([
        expect.objectContaining({ code: 'ERR_LOCK_TIMEOUT', name: 'RequestBusyError', lockName: key, waitTime: 0 }),
      ]);
      expect(handler).not.toHaveBeenCalled();
      await hold.release();
    });

    test('gives the status and the seconds of the options', async () => {
      const hold = await holdElsewhere(client.getLock(key));
      const url = await serve(application(never, { status: 409, retryAfter: 5, waitTime: 1 }));
      const { status, headers } = await send(`${url}/1`).answer;
      expect([status, headers['retry-after']]).toEqual([409, '5']);
      await hold.release();
    });

    test('is answered by onBusy, whose errors reach the error handlers', async () => {
      const hold = await holdElsewhere(client.getLock(key));
      const url = await serve(
        application(never, {
          onBusy: async (busy, request, response) => {
            if (request.params.id === 'fail') throw Object.assign(new Error('no answer'), { status: 418 });
            response.status(202).send(`queued for ${busy.lockName}`);
          },
        }),
      );
      expect(await send(`${url}/1`).answer).toMatchObject({ status: 202, text: `queued for ${key}` });
      expect((await send(`${url}/fail`).answer).status).toBe(418);
      await hold.release();
    });
  });

  describe('the lock is released', () => {
    test('when the handler throws', async () => {
      const url = await serve(
        application(() => {
          throw new Error('the handler failed');
        }),
      );
      expect((await send(`${url}/1`).answer).status).toBe(500);
      await free();
    });

    test('when the client disconnects from a handler that never answers', async () => {
      const seen: RequestLock[] = [];
      const url = await serve(application((request) => seen.push(requestLock(request)!)));
      const sent = send(`${url}/1`);
      await until(() => seen.length === 1, 'the handler runs');
      await held();
      const { signal, hold } = seen[0]!;
      expect(signal.aborted).toBe(false);
      sent.disconnect();
      await free();
      expect([signal.aborted, hold.signal.aborted]).toEqual([true, false]);
    });

    test('when a stream has ended, and not before', async () => {
      let finish: () => void = never;
      async function* parts(): AsyncGenerator<string> {
        yield 'first';
        await new Promise<void>((resolve) => (finish = resolve));
        yield ' second';
      }
      const url = await serve(application((_request, response) => pipeline(parts, response)));
      const sent = send(`${url}/1`);
      expect(await sent.firstPart).toBe('first');
      await pause(QUIET_MS);
      expect(await isFree()).toBe(false);
      finish();
      expect((await sent.answer).text).toBe('first second');
      await free();
    });

    test('when the client disconnects in the middle of a stream', async () => {
      const url = await serve(application((_request, response) => response.write('first')));
      const sent = send(`${url}/1`);
      await sent.firstPart;
      expect(await isFree()).toBe(false);
      sent.disconnect();
      await free();
    });

    test('after each request of a connection that is kept alive', async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const owners: string[] = [];
      const sockets = new Set<unknown>();
      const url = await serve(
        application(
          async (request, response) => {
            sockets.add(request.socket);
            owners.push(requestLock(request)!.hold.owner);
            response.send(String(await client.getLock(key).getHoldCount()));
          },
          { waitTime: 10_000 },
        ),
      );
      const answers = [];
      for (let i = 0; i < 3; i += 1) answers.push((await send(`${url}/1`, { agent }).answer).text);
      expect(answers).toEqual(['1', '1', '1']);
      expect([sockets.size, new Set(owners).size]).toEqual([1, 3]);
      await free();
      agent.destroy();
    });
  });

  test('a client that disconnects while its request waits stops the wait, and the handler never runs', async () => {
    const hold = await holdElsewhere(client.getLock(key));
    const { waits } = client.stats();
    const handler = jest.fn(never);
    const errors = jest.fn();
    const app = application(handler, { waitTime: 60_000 });
    app.use(((error, _request, _response, next) => {
      errors(error);
      next(error);
    }) satisfies ErrorRequestHandler);
    const url = await serve(app);
    const sent = send(`${url}/1`);
    await until(() => client.stats().waits === waits + 1, 'the request waits');
    sent.disconnect();
    await until(() => client.stats().waiting === 0, 'the request has left the line');
    await hold.release();
    await free();
    expect(handler).not.toHaveBeenCalled();
    expect(errors).not.toHaveBeenCalled();
  });

  test('an error of the key, an invalid key and an unavailable Redis reach the error handlers', async () => {
    const { proxy, url: redis } = await openProxy();
    const away = await openClient({ url: redis, commandTimeout: 100 });
    const app = express();
    const refused: (string | undefined)[] = [];
    app.post('/throws', lockRequest({ client, key: () => Promise.reject(new RangeError('no such order')) }), never);
    app.post('/invalid', lockRequest({ client, key: () => undefined as unknown as string }), never);
    app.post('/away', lockRequest({ client: away, key }), never);
    app.use(((error, _request, response, _next) => {
      refused.push((error as { code?: string }).code ?? (error as Error).name);
      response.status(500).end();
    }) satisfies ErrorRequestHandler);
    const url = await serve(app);
    await send(`${url}/throws`).answer;
    await send(`${url}/invalid`).answer;
    proxy.cut();
    proxy.refuse('reset');
    await send(`${url}/away`).answer;
    expect(refused).toEqual(['RangeError', 'ERR_LOCK_INVALID_ARGUMENT', 'ERR_LOCK_REDIS_UNAVAILABLE']);
  });

  test('a request whose hold is lost aborts its signal and is answered all the same', async () => {
    const url = await serve(
      application(async (request, response) => {
        const { signal } = requestLock(request)!;
        await client.getLock(key).forceUnlock();
        await until(() => signal.aborted, 'the signal aborts');
        response.send((signal.reason as Error).name);
      }),
    );
    expect(await send(`${url}/1`).answer).toMatchObject({ status: 200, text: 'LockLostError' });
  });
});

describe('lockRequest', () => {
  const good = (): LockRequestOptions => ({ client, key: 'order' });

  test.each<[string, Record<string, unknown>]>([
    ['client', { client: {} }],
    ['key', { key: 42 }],
    ['kind', { kind: 'exclusive' }],
    ['when', { when: true }],
    ['status', { status: 503 }],
    ['retryAfter', { retryAfter: 0.5 }],
    ['onBusy', { onBusy: 'skip' }],
    ['waitTme', { waitTme: 5 }],
  ])('refuses a bad %s at the definition of the route', (argument, options) => {
    expect(() => lockRequest({ ...good(), ...options })).toThrow(
      expect.objectContaining({ code: 'ERR_LOCK_INVALID_ARGUMENT', argument }),
    );
  });

  test('refuses options that are no object', () => {
    expect(() => lockRequest(undefined as unknown as LockRequestOptions)).toThrow(
      'options must be an object with a key',
    );
  });
});
