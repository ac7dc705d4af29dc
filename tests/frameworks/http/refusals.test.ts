import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { createRequire } from 'node:module';
import express5 from 'express';
import fastify from 'fastify';
import type { LockClient } from '../../../src/index.js';
import { lockRequest } from '../../../src/integrations/express/index.js';
import { holdfastFastify } from '../../../src/integrations/fastify/index.js';
import { createInspector } from '../../../src/integrations/inspector/index.js';
import { closeClients, holdElsewhere, openClient } from '../../support/clients/lock-clients.js';
import { send } from '../../support/http/http-client.js';
import { closeServers, serve } from '../../support/http/http-server.js';
import { freshName } from '../../support/redis.js';

const require = createRequire(import.meta.url);
const express4 = require('express-4') as typeof express5;

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

/** What a function may reject with, and what Express and Fastify take for no error. */
const NO_ERRORS = [undefined, null, 0, '', 'route', 'router'];

const rejecting = (reason: unknown) => (): Promise<never> =>
  // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- this is what the tests are about
  Promise.reject(reason);

/** The options of a route, one of whose functions rejects with a value. */
const FUNCTIONS = {
  key: (rejects: () => Promise<never>) => ({ key: rejects }),
  when: (rejects: () => Promise<never>) => ({ key, when: rejects }),
  onBusy: (rejects: () => Promise<never>) => ({ key, onBusy: rejects }),
} as const;

const names = Object.keys(FUNCTIONS) as (keyof typeof FUNCTIONS)[];

describe.each([
  ['Express 5', express5],
  ['Express 4', express4],
])('%s', (_version, express) => {
  test.each(names)('a request whose `%s` rejects with no error does not go on without its lock', async (name) => {
    const hold = await holdElsewhere(client.getLock(key));
    const handler = jest.fn((_request, response: express5.Response) => void response.end());
    for (const reason of NO_ERRORS) {
      const app = express();
      const causes: unknown[] = [];
      const lock = lockRequest({ client, ...FUNCTIONS[name](rejecting(reason)) });
      app.post('/', lock, handler);
      app.use(handler);
      app.use(((error: Error, _request, response, _next) => {
        causes.push(error.cause);
        response.status(500).end();
      }) satisfies express5.ErrorRequestHandler);
      expect([reason, (await send(await serve(app)).answer).status]).toEqual([reason, 500]);
      expect(causes).toEqual([reason]);
    }
    expect(handler).not.toHaveBeenCalled();
    await hold.release();
  });

  test('a request to the inspector whose `authorize` rejects with no error does not go on', async () => {
    const handler = jest.fn((_request, response: express5.Response) => void response.end());
    for (const reason of NO_ERRORS) {
      const app = express();
      app.use('/locks', createInspector({ client, authorize: rejecting(reason) }));
      app.use(handler);
      app.use(((_error, _request, response, _next) => {
        response.status(500).end();
      }) satisfies express5.ErrorRequestHandler);
      const { status } = await send(`${await serve(app)}/locks/`, { method: 'GET' }).answer;
      expect([reason, status]).toEqual([reason, 500]);
    }
    expect(handler).not.toHaveBeenCalled();
  });
});

test.each(names)(
  'a request of Fastify whose `%s` rejects with no error does not go on without its lock',
  async (name) => {
    const hold = await holdElsewhere(client.getLock(key));
    const handler = jest.fn(async () => 'done');
    const app = fastify({ forceCloseConnections: true });
    await app.register(holdfastFastify, { client });
    for (const [i, reason] of NO_ERRORS.entries()) {
      app.post(`/${i}`, { config: { lock: FUNCTIONS[name](rejecting(reason)) } }, handler);
    }
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
    for (const [i, reason] of NO_ERRORS.entries()) {
      expect([reason, (await send(`${url}/${i}`).answer).status]).toEqual([reason, 500]);
    }
    expect(handler).not.toHaveBeenCalled();
    await app.close();
    await hold.release();
  },
);
