import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { fileURLToPath } from 'node:url';
import type { LockClient } from '../../../src/index.js';
import { closeClients, holdElsewhere, openClient } from '../../support/clients/lock-clients.js';
import { send } from '../../support/http/http-client.js';
import { JsonProcess } from '../../support/processes/json-process.js';
import { compileFixture, type Compiled, type Compiler } from '../../support/project/compile-fixture.js';
import { freshName, testRedisUrl } from '../../support/redis.js';
import { until } from '../../support/time/until.js';

type Line =
  | { port: number; paths: string[]; summary: string }
  | { ranAt: number }
  | { skippedAt: number }
  | { hook: string; open: boolean }
  | { background: string }
  | { hook: 'exit'; left: number };

const SOURCE = fileURLToPath(new URL('./fixtures/application.cts', import.meta.url));
const START_MS = 60_000;
/** As in the fixture. */
const AT_LEAST_MS = 500;

const compiled = new Map<Compiler, Compiled>();
const running: JsonProcess<Line>[] = [];
let client: LockClient;
let prefix: string;

beforeAll(async () => {
  for (const compiler of ['tsc', 'swc'] as const) compiled.set(compiler, await compileFixture(SOURCE, compiler));
}, 120_000);
afterAll(() => {
  for (const { remove } of compiled.values()) remove();
});
beforeEach(async () => {
  client = await openClient();
  prefix = freshName();
});
afterEach(async () => {
  for (const app of running) app.kill('SIGTERM');
  await Promise.all(running.splice(0).map((app) => app.ended()));
  await closeClients();
});

/** Starts the application and returns it with its URL. */
async function start(compiler: Compiler, ...args: string[]) {
  const app = new JsonProcess<Line>(compiled.get(compiler)!.file, [testRedisUrl(), prefix, ...args]);
  running.push(app);
  const { port, paths, summary } = await app.line('port', START_MS);
  return { app, paths, summary, url: `http://127.0.0.1:${port}/orders` };
}

const json = async (url: string, method = 'POST'): Promise<unknown> =>
  JSON.parse((await send(url, { method }).answer).text) as unknown;

describe.each([
  ['tsc', 'express'],
  ['swc', 'fastify'],
] as const)('an application that %s compiled, on %s', (compiler, platform) => {
  test(
    'injects clients and locks, answers a busy lock with 409 and Retry-After, and reports its health',
    async () => {
      const { url, paths } = await start(compiler, platform);
      expect(paths).toContain('/orders/{id}/pay/{ms}');
      expect(await json(`${url}/both`, 'GET')).toEqual({
        inside: 1,
        other: true,
        clients: true,
        name: `${prefix}:injected`,
      });
      expect(await json(`${url}/7/pay/0`)).toEqual({ id: '7', nested: 2 });

      const hold = await holdElsewhere(client.getLock(`${prefix}:order:7`));
      const { status, headers, text } = await send(`${url}/7/pay/0`).answer;
      expect([status, headers['retry-after']]).toEqual([409, '3']);
      expect(JSON.parse(text)).toEqual({
        statusCode: 409,
        error: 'Conflict',
        message: 'another request holds the lock of this resource; try again in 3 s',
      });
      await hold.release();

      const up = { status: 'up' };
      expect(await json(`${url}/health`, 'GET')).toMatchObject({ status: 'ok', info: { locks: up } });
      expect(await json(`${url}/health/away`, 'GET')).toMatchObject({
        status: 'error',
        info: { locks: up },
        error: { away: { status: 'down', code: 'ERR_LOCK_REDIS_UNAVAILABLE' } },
      });
    },
    START_MS,
  );

  test(
    'keeps the metadata of other decorators on a method with @Locked, whose locks are those of the named clients',
    async () => {
      const { url, summary } = await start(compiler, platform);
      expect(summary).toBe('below');
      const paid = await send(`${url}/7/locked`).answer;
      expect([paid.status, JSON.parse(paid.text)]).toEqual([202, { id: '7', nested: 3, audit: true }]);
      expect((await send(`${url}/seven/locked`).answer).status).toBe(400);
      const hold = await holdElsewhere(client.getLock(`${prefix}:order:7`));
      const { status, headers } = await send(`${url}/7/locked`).answer;
      expect([status, headers['retry-after']]).toEqual([409, '3']);
      await hold.release();
    },
    START_MS,
  );

  test(
    'closes its clients at a signal, when the server has answered its requests',
    async () => {
      const { app, url } = await start(compiler, platform);
      const sent = send(`${url}/7/pay/1000`);
      await until(() => client.getLock(`${prefix}:order:7`).isLocked(), 'the request holds its lock');
      app.kill('SIGTERM');
      expect(await sent.answer).toMatchObject({ status: 201, text: JSON.stringify({ id: '7', nested: 2 }) });
      expect(await app.ended()).toBe(0);
      expect(app.lines.slice(1)).toEqual([
        { hook: 'onModuleDestroy', open: true },
        { hook: 'beforeApplicationShutdown', open: true },
        { hook: 'onApplicationShutdown', open: true },
        { hook: 'exit', left: 0 },
      ]);
      expect(await client.getLock(`${prefix}:order:7`).isLocked()).toBe(false);
    },
    START_MS,
  );
});

test(
  'a section that no request waits for ends before its client closes, if the module drains',
  async () => {
    const { app, url } = await start('tsc', 'express');
    expect((await send(`${url}/7/begin/1500`).answer).status).toBe(201);
    expect(await client.getLock(`${prefix}:order:7`).isLocked()).toBe(true);
    app.kill('SIGTERM');
    expect(await app.ended()).toBe(0);
    expect(app.lines.slice(-3)).toEqual([
      { hook: 'onApplicationShutdown', open: true },
      { background: 'released' },
      { hook: 'exit', left: 0 },
    ]);
    expect(await client.getLock(`${prefix}:order:7`).isLocked()).toBe(false);
  },
  START_MS,
);

test(
  'without the filter of the module a busy lock is an error of the application, except where it uses the filter',
  async () => {
    const { url } = await start('swc', 'express', 'off');
    const hold = await holdElsewhere(client.getLock(`${prefix}:order:7`));
    expect((await send(`${url}/7/pay/0`).answer).status).toBe(500);
    const { status, headers } = await send(`${url}/7/filtered`).answer;
    expect([status, headers['retry-after']]).toEqual([423, '1']);
    await hold.release();
  },
  START_MS,
);

test(
  'a job that two processes schedule runs in one of them, and not again before its lock ends',
  async () => {
    const apps = await Promise.all([start('swc', 'express', 'on', 'on'), start('tsc', 'express', 'on', 'on')]);
    const times = (field: 'ranAt' | 'skippedAt'): number[] =>
      apps.flatMap(({ app }) => app.lines.flatMap((line) => (field in line ? [line[field as never] as number] : [])));
    await until(() => times('ranAt').length >= 3 && times('skippedAt').length > 0, 'the job has run in three seconds');
    const ran = times('ranAt').sort((a, b) => a - b);
    const shortest = Math.min(...ran.slice(1).map((at, i) => at - ran[i]!));
    expect(shortest).toBeGreaterThanOrEqual(AT_LEAST_MS);
  },
  START_MS,
);
