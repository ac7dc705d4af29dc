import { afterEach, expect, test } from '@jest/globals';
import { fileURLToPath } from 'node:url';
import { pause } from '../support/clients/lock-clients.js';
import { send } from '../support/http/http-client.js';
import { JsonProcess } from '../support/processes/json-process.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { STARTED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

const SERVER = fileURLToPath(new URL('./fixtures/counter-server.mjs', import.meta.url));
const REQUESTS = 30;
const LIMIT_MS = 90_000;

const servers: JsonProcess<{ port: number }>[] = [];
afterEach(async () => {
  for (const server of servers) server.kill('SIGKILL');
  await Promise.all(servers.splice(0).map((server) => server.ended()));
});

test(
  'requests of two processes run one after the other, also while clients disconnect from their wait and from their handler',
  async () => {
    const key = freshName();
    servers.push(
      ...['express', 'fastify'].map(
        (framework) => new JsonProcess<{ port: number }>(SERVER, [framework, testRedisUrl(), key]),
      ),
    );
    const urls = await Promise.all(
      servers.map(async (server) => `http://127.0.0.1:${(await server.line('port', LIMIT_MS)).port}`),
    );
    const sent = Array.from({ length: REQUESTS }, () => urls.map((url) => send(url))).flat();
    const leaving = Array.from({ length: REQUESTS }, () => urls.map((url) => send(url))).flat();
    await pause(STARTED_MS);
    for (const { disconnect } of leaving) disconnect();
    const answers = await Promise.all(sent.map(({ answer }) => answer));
    expect(answers.map(({ status, text }) => `${status} ${text}`)).toEqual(answers.map(() => '200 counted'));
    await until(async () => (await admin().exists(`${key}:lock`)) === 0, 'every request has left');
    const [begun, counted] = await admin().mget(`${key}:begun`, `${key}:counted`);
    expect(Number(begun)).toBeGreaterThanOrEqual(sent.length);
    expect(counted).toBe(begun);
    await admin().del(`${key}:begun`, `${key}:counted`);
  },
  LIMIT_MS,
);
