import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createClient } from '../../src/client/create-client.js';
import { CODES } from '../../src/redis/server-error.js';
import { codeIn, page, tableUnder } from '../support/project/guide.js';
import type { Hold } from '../../src/holding/hold.js';
import { block, closeClients, inFlow, openClient, openProxy, outcome } from '../support/clients/lock-clients.js';
import { freshName } from '../support/redis.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { until } from '../support/time/until.js';
import { reach } from '../support/servers/topology.mjs';

afterEach(() => closeClients());

describe('every error code of Redis', () => {
  const rows = tableUnder('Error code', page('docs/redis-errors.md')).map(([code, , does]) => [
    codeIn(code!)[0]!,
    does!,
  ]);

  test('is on the page, with what the client does', () => {
    const kinds: Record<string, RegExp> = {
      'not-executed': /tries again|follows/,
      'unknown-script': /sends the script/,
      refused: /rejects/,
    };
    expect(rows.map(([code]) => code)).toEqual(Object.keys(CODES).sort());
    expect(rows.filter(([code, does]) => !kinds[CODES[code!]!]!.test(does!))).toEqual([]);
  });

  test('ends a call at once only if the page says "rejects"', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const ends: [string, unknown][] = [];
    for (const [code] of rows) {
      const details = code === 'MOVED' || code === 'ASK' ? '1 127.0.0.1:1' : 'told by the server';
      proxy.answer({ command: 'EVALSHA' }, `-${code} ${details}\r\n`);
      ends.push([code!, await outcome(client.getLock(freshName()).withLock({ waitTime: 5_000 }, () => undefined))]);
    }
    expect(ends).toEqual(rows.map(([code, does]) => [code, /^rejects/.test(does!) ? 'ERR_LOCK_REFUSED' : 'ok']));
  });

  test('counts where the code is inside the error of a script, as Redis 6 sends it', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    for (const code of ['READONLY', 'MASTERDOWN', 'NOREPLICAS', 'MISCONF']) {
      const text = `ERR Error running script (call to f_0): @user_script:9: @user_script: 9: -${code} told by the server`;
      proxy.answer({ command: 'EVALSHA' }, `-${text}\r\n`);
      await client.getLock(freshName()).withLock({ waitTime: 5_000 }, () => undefined);
    }
  });
});

describe('while Redis cannot write to its disk', () => {
  let server: RedisServer;
  let inTheWay: string;
  beforeAll(async () => {
    server = await startServer({ config: { save: '3600 1000000' } });
    const [, directory] = (await server.command('CONFIG', 'GET', 'dir')) as [string, string];
    inTheWay = join(directory, 'dump.rdb');
  });
  afterAll(() => server.stop());

  /** A folder that is not empty is where Redis puts its file. */
  async function disk(works: boolean): Promise<void> {
    if (works) await rm(inTheWay, { recursive: true });
    else await mkdir(join(inTheWay, 'full'), { recursive: true });
    await until(async () => {
      await server.command('BGSAVE').catch(() => undefined);
      return String(await server.command('INFO', 'persistence')).includes(
        `rdb_last_bgsave_status:${works ? 'ok' : 'err'}`,
      );
    }, 'Redis has tried to save');
  }

  test('a waiting call waits on, and one that does not wait rejects with the error of Redis', async () => {
    const client = createClient({ ...reach(server.url), commandTimeout: 600 });
    try {
      await client.ready();
      await disk(false);
      const lock = client.getLock('disk');
      let settled = false;
      const waiting = lock.withLock({ waitTime: 20_000 }, () => 'inside').finally(() => (settled = true));
      await expect(client.getLock('another').acquire({ waitTime: 0 })).rejects.toMatchObject({
        code: 'ERR_LOCK_REDIS_UNAVAILABLE',
        message: expect.stringMatching(/: MISCONF /),
      });
      expect(settled).toBe(false);
      await disk(true);
      expect(await waiting).toBe('inside');
    } finally {
      await client.close();
    }
  });
});

test('a script that the server has forgotten is sent, also if the reply that says so waited in a blocked event loop', async () => {
  const server = await startServer();
  const client = createClient({ ...reach(server.url), commandTimeout: 3_000 });
  try {
    await client.ready();
    const lock = client.getLock('blocked');
    await inFlow(() => lock.withLock(() => undefined));
    await server.scriptFlush();
    const calls = [
      inFlow(() => lock.acquire({ waitTime: 0 })),
      inFlow(() => client.getSemaphore('permits').trySetPermits(1)),
    ];
    // A command of a crowded turn is written in a `nextTick`. A command that the block held back would be overdue unsent.
    await new Promise<void>((resume) => {
      process.nextTick(() => process.nextTick(() => resume(block(3_200))));
    });
    const [hold] = await Promise.all(calls as [Promise<Hold>, Promise<unknown>]);
    await hold.release();
  } finally {
    await client.close();
    await server.stop();
  }
});
