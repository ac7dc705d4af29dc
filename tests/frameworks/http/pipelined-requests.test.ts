import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { defaultMaxListeners } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import express5 from 'express';
import session from 'express-session';
import fastify, { type FastifyInstance } from 'fastify';
import type { LockClient } from '../../../src/index.js';
import { lockRequest } from '../../../src/integrations/express/index.js';
import { holdfastFastify } from '../../../src/integrations/fastify/index.js';
import { createInspector } from '../../../src/integrations/inspector/index.js';
import { holdForRequest, requestLock, type RequestLock } from '../../../src/integrations/http/index.js';
import { closeClients, holdElsewhere, openClient, pause } from '../../support/clients/lock-clients.js';
import { send, sendTogether } from '../../support/http/http-client.js';
import { closeServers, serve } from '../../support/http/http-server.js';
import { freshName } from '../../support/redis.js';
import { QUIET_MS } from '../../support/time/pauses.js';
import { until } from '../../support/time/until.js';

const require = createRequire(import.meta.url);

let client: LockClient;
let key: string;
const apps: FastifyInstance[] = [];

beforeEach(async () => {
  client = await openClient();
  key = freshName();
});
afterEach(async () => {
  await closeServers();
  await Promise.all(apps.splice(0).map((app) => app.close()));
  await closeClients();
});

const isFree = async (): Promise<boolean> => !(await client.getLock(key).isLocked());
const free = (): Promise<void> => until(isFree, 'the lock is free');

interface Route {
  /** Resolves with the name of the lock; none: the route has no lock. */
  readonly key?: () => Promise<string>;
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
}

type Routes = Readonly<Record<string, Route>>;

/** Serves the routes, whose requests wait for their locks without a limit. */
type Framework = (routes: Routes) => Promise<string>;

const waitTime = Infinity;

const nodeHttp: Framework = (routes) =>
  serve((request, response) => {
    const { key: keyOf, handle } = routes[request.url!]!;
    const run = (): void => handle(request, response);
    if (keyOf === undefined) return run();
    void keyOf().then((name) => holdForRequest(request, response, { client, key: name, waitTime }, run));
  });

const ofExpress =
  (express: typeof express5): Framework =>
  (routes) => {
    const app = express();
    for (const [path, { key: keyOf, handle }] of Object.entries(routes)) {
      app.get(path, ...(keyOf === undefined ? [] : [lockRequest({ client, key: keyOf, waitTime })]), handle);
    }
    return serve(app);
  };

const ofFastify: Framework = async (routes) => {
  const app = fastify({ forceCloseConnections: true });
  apps.push(app);
  await app.register(holdfastFastify, { client });
  for (const [path, { key: keyOf, handle }] of Object.entries(routes)) {
    const lock = keyOf === undefined ? undefined : { key: keyOf, waitTime };
    app.get(path, { config: { lock } }, (request, reply) => {
      reply.hijack();
      handle(request.raw, reply.raw);
    });
  }
  return app.listen({ host: '127.0.0.1', port: 0 });
};

const keyed = () => Promise.resolve(key);
const never: Route = { handle: () => undefined };

describe.each<[string, Framework]>([
  ['node:http', nodeHttp],
  ['Express 5', ofExpress(express5)],
  ['Express 4', ofExpress(require('express-4') as typeof express5)],
  ['Fastify', ofFastify],
])('a request behind another one on its connection, in %s', (_framework, serveRoutes) => {
  test('releases its lock when the client disconnects', async () => {
    const seen: RequestLock[] = [];
    const handle = jest.fn((request: IncomingMessage) => void seen.push(requestLock(request)!));
    const url = await serveRoutes({ '/slow': never, '/locked': { key: keyed, handle } });
    const sent = sendTogether(url, '/slow', '/locked');
    await until(() => seen.length === 1, 'the handler runs');
    expect([await isFree(), seen[0]!.signal.aborted]).toEqual([false, false]);
    sent.disconnect();
    await free();
    expect([seen[0]!.signal.aborted, seen[0]!.hold.signal.aborted]).toEqual([true, false]);
  });

  test('stops waiting when the client disconnects, and its handler never runs', async () => {
    const hold = await holdElsewhere(client.getLock(key));
    const { waits } = client.stats();
    const handle = jest.fn();
    const url = await serveRoutes({ '/slow': never, '/locked': { key: keyed, handle } });
    const sent = sendTogether(url, '/slow', '/locked');
    await until(() => client.stats().waits === waits + 1, 'the request waits');
    sent.disconnect();
    await until(() => client.stats().waiting === 0, 'the request has left the line');
    await hold.release();
    await free();
    expect(handle).not.toHaveBeenCalled();
  });

  test('does not ask for its lock when the client has disconnected before', async () => {
    const handle = jest.fn();
    let nameIt: (name: string) => void = () => undefined;
    const name = new Promise<string>((resolve) => (nameIt = resolve));
    let [arrived, gone] = [false, false];
    const slow = ({ socket }: IncomingMessage): void => {
      arrived = true;
      socket.once('close', () => (gone = true));
    };
    const url = await serveRoutes({ '/slow': { handle: slow }, '/locked': { key: () => name, handle } });
    const sent = sendTogether(url, '/slow', '/locked');
    await until(() => arrived, 'the server has the requests');
    sent.disconnect();
    await until(() => gone, 'the server has seen the disconnection');
    nameIt(key);
    await pause(QUIET_MS);
    expect(handle).not.toHaveBeenCalled();
  });

  test.each(['end', 'destroy'] as const)('releases its lock when its handler calls %s()', async (method) => {
    const signals: AbortSignal[] = [];
    const handle = (request: IncomingMessage, response: ServerResponse): void => {
      signals.push(requestLock(request)!.signal);
      response[method]();
    };
    const url = await serveRoutes({ '/slow': never, '/locked': { key: keyed, handle } });
    sendTogether(url, '/slow', '/locked');
    await until(() => signals.length === 1, 'the handler has run');
    await free();
    expect(signals[0]!.aborted).toBe(true);
  });

  test('and that one want the same lock: the second gets it first, and both are answered', async () => {
    let inside = false;
    const answer = (text: string) => (_request: IncomingMessage, response: ServerResponse) => {
      inside = true;
      response.end(text);
    };
    const later = () => until(() => inside, 'the second request is inside').then(keyed);
    const url = await serveRoutes({
      '/first': { key: later, handle: answer('one') },
      '/second': { key: keyed, handle: answer('two') },
    });
    const sent = sendTogether(url, '/first', '/second');
    await until(() => sent.text().endsWith('two'), 'both responses');
    expect(sent.text()).toMatch(/one[^]*two$/);
    await free();
  });

  test('holds its lock until its last byte if its turn comes before', async () => {
    let [first, second] = [0, 0].map(() => undefined as ServerResponse | undefined);
    const url = await serveRoutes({
      '/first': { handle: (_request, response) => void (first = response) },
      '/second': { key: keyed, handle: (_request, response) => void (second = response) },
    });
    const sent = sendTogether(url, '/first', '/second');
    await until(() => first !== undefined && second !== undefined, 'both handlers run');
    first!.end();
    await until(() => sent.text().includes('200 OK'), 'the first response');
    expect(await isFree()).toBe(false);
    second!.end('two');
    await until(() => sent.text().endsWith('two'), 'the second response');
    await free();
  });
});

test.each([
  ['Express 5', express5],
  ['Express 4', require('express-4') as typeof express5],
])(
  'in %s with express-session, which ends a response later, a request gets the lock of the one behind it',
  async (...row) => {
    const [, express] = row;
    const app = express();
    app.use(session({ secret: 'a secret of the test', resave: true, saveUninitialized: true }));
    let inside = false;
    const second = () => until(() => inside, 'the second request is inside').then(keyed);
    app.get('/first', lockRequest({ client, key: second, waitTime }), (_request, response) => void response.end('one'));
    app.get('/second', lockRequest({ client, key: keyed, waitTime }), (_request, response) => {
      inside = true;
      response.end('two');
    });
    const sent = sendTogether(await serve(app), '/first', '/second');
    await until(() => sent.text().includes('two'), 'both responses');
    expect(sent.text()).toMatch(/one[^]*two/);
    await free();
  },
);

test('the signals of a request and of its hold are one each, and many calls may have them without a warning', async () => {
  const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  let seen: RequestLock | undefined;
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    seen = requestLock(request);
    const calls = Array.from({ length: 20 }, () => () => undefined);
    for (const call of calls) seen?.signal.addEventListener('abort', call);
    for (const call of calls) seen?.hold.signal.addEventListener('abort', call);
    expect(seen?.signal).toBe(requestLock(request)?.signal);
    response.end();
  };
  const url = await nodeHttp({ '/': { key: keyed, handle } });
  send(url);
  await until(() => seen !== undefined, 'the request was handled');
  await free();
  await pause(QUIET_MS);
  expect(warned).not.toHaveBeenCalled();
  warned.mockRestore();
});

test('many requests of one connection add no listener each to it', async () => {
  const listeners: number[] = [];
  const handle = ({ socket }: IncomingMessage): void => void listeners.push(socket.listenerCount('close'));
  const paths = Array.from({ length: 20 }, (_, i) => `/${i}`);
  const url = await nodeHttp(
    Object.fromEntries(paths.map((path) => [path, { handle, key: async () => `${key}${path}` }])),
  );
  const sent = sendTogether(url, ...paths);
  await until(() => listeners.length === paths.length, 'every handler runs');
  // With more, Node warns of a leak.
  expect(Math.max(...listeners)).toBeLessThanOrEqual(defaultMaxListeners);
  sent.disconnect();
  await until(() => client.holds().length === 0, 'every lock is free');
});

test('a page of the inspector behind another request ends when its client disconnects', async () => {
  const page = createInspector({ client, authorize: () => true });
  const url = await serve((request, response) => (request.url === '/slow' ? undefined : page(request, response)));
  const status = async (): Promise<number> => {
    const sent = send(`${url}/events`, { method: 'HEAD' });
    return (await sent.answer).status;
  };
  const pages = Array.from({ length: 20 }, () => sendTogether(url, '/slow', '/events'));
  await until(async () => (await status()) === 503, 'as many pages are open as may be');
  for (const { disconnect } of pages) disconnect();
  await until(async () => (await status()) === 200, 'another page may open');
  page.close();
});
