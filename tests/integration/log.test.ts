import { afterEach, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { pino } from 'pino';
import { logTo } from '../../src/diagnostics/log.js';
import { closeClients, holdElsewhere, openClient, outcome } from '../support/clients/lock-clients.js';
import { PROJECT_ROOT } from '../support/project/project-files.js';
import { freshName, testRedisUrl } from '../support/redis.js';

afterEach(() => closeClients());

describe('logTo', () => {
  test('writes to pino: a lost lock as an error, with the fields of the event', async () => {
    const lines: Record<string, unknown>[] = [];
    const logger = pino(
      { level: 'debug' },
      { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
    );
    const client = await openClient();
    const stop = logTo(client, logger);
    const lock = client.getLock(freshName());
    const hold = await lock.acquire();
    await lock.forceUnlock();
    await outcome(hold.release());
    stop();
    await lock.withLock(() => undefined);
    const { debug, error } = pino.levels.values;
    const common = { clientId: client.id, lockName: lock.name, owner: hold.owner };
    expect(lines).toMatchObject([
      { ...common, level: debug, event: 'acquired', msg: `holdfast acquired "${lock.name}"` },
      { ...common, level: error, event: 'leaseLost', reason: 'forced', msg: `holdfast lost "${lock.name}": forced` },
    ]);
  });

  test('writes to a console: the message first, and the error as `err`', async () => {
    const lines: unknown[][] = [];
    const line =
      (level: string) =>
      (...args: unknown[]): void =>
        void lines.push([level, ...args]);
    const client = await openClient();
    logTo(client, { error: line('error'), warn: line('warn'), debug: line('debug') });
    const lock = client.getLock(freshName());
    const hold = await holdElsewhere(lock);
    expect(await lock.tryLock()).toBe(false);
    const waiting = outcome(lock.acquire());
    await client.close({ releaseHolds: true });
    await waiting;
    await outcome(hold.release());
    expect(lines.filter(([, text]) => /did not/.test(String(text)))).toEqual([
      [
        'debug',
        `holdfast did not acquire "${lock.name}": busy`,
        expect.objectContaining({ event: 'notAcquired', err: expect.objectContaining({ code: 'ERR_LOCK_TIMEOUT' }) }),
      ],
      ['warn', `holdfast did not acquire "${lock.name}": failed`, expect.objectContaining({ outcome: 'failed' })],
    ]);
  });

  test('refuses what is no logger', async () => {
    const client = await openClient();
    for (const logger of [undefined, null, {}, { error: console.error }]) {
      expect(() => logTo(client, logger as never)).toThrow('a logger with the methods error, warn and debug');
    }
  });
});

test('NODE_DEBUG=holdfast writes the events to stderr, and nothing else does', async () => {
  const program = `
    const { createClient } = await import(${JSON.stringify(pathToFileURL(join(PROJECT_ROOT, 'dist/index.mjs')).href)});
    const client = createClient({ url: ${JSON.stringify(testRedisUrl())} });
    await client.getLock(${JSON.stringify(freshName())}).withLock(() => undefined);
    await client.close();`;
  const run = (NODE_DEBUG: string): Promise<{ stderr: string }> =>
    promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
      env: { ...process.env, NODE_DEBUG },
    });
  expect((await run('holdfast')).stderr).toMatch(
    /HOLDFAST \d+: debug holdfast acquired "[^]*HOLDFAST \d+: debug holdfast released "/,
  );
  expect((await run('')).stderr).toBe('');
});
