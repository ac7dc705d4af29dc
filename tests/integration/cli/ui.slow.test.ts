import { afterEach, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closeClients, holdElsewhere, openClient } from '../../support/clients/lock-clients.js';
import { OpenPage } from '../../support/http/event-stream.js';
import { Command, runCommand } from '../../support/processes/command.js';
import { freshName, testRedisUrl } from '../../support/redis.js';
import { until } from '../../support/time/until.js';

afterEach(closeClients);

const env = { HOLDFAST_URL: testRedisUrl() };

/** Follows the link that the command printed, as a browser does. `secret`: what its tab keeps. */
async function enter(url: string): Promise<{ status: number; secret: string; base: string }> {
  const response = await fetch(url, { redirect: 'manual' });
  // A cookie would go to every other server on this machine.
  expect(response.headers.getSetCookie()).toEqual([]);
  const [, secret = ''] = /setItem\('holdfast-session', '([\w-]{32})'\)/.exec(await response.text()) ?? [];
  return { status: response.status, secret, base: new URL(url).origin };
}

/** The status of a request for exactly this path: `fetch` would change the path. */
async function statusOf(base: string, path: string): Promise<number> {
  const sent = get(base, { path, agent: false });
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode!;
}

test('ui: the link works once, its secret opens the page without a cookie, and Ctrl-C ends it', async () => {
  const client = await openClient({ clientName: 'shop' });
  const hold = await holdElsewhere(client.getLock(freshName()));
  const command = new Command(['ui', '--json'], { env });
  await command.says('}\n');
  const { url } = JSON.parse(command.out) as { url: string };
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]{32}$/);
  const { status, secret, base } = await enter(url);
  expect([status, secret.length]).toEqual([200, 32]);
  expect((await enter(url)).status).toBe(403);
  expect((await enter(`${base}/?token=x`)).status).toBe(403);
  for (const path of ['/events', '/unlock', '/nothing', `/events?session=${secret}x`, '/events?session=']) {
    expect([path, (await fetch(base + path)).status]).toEqual([path, 403]);
  }
  const cookie = `holdfast-session=${secret}; holdfast_ui_${new URL(url).port}=${secret}`;
  expect((await fetch(`${base}/events`, { headers: { cookie } })).status).toBe(403);
  // The files of the page have no data.
  for (const path of ['/', '/inspector.css', '/inspector.js']) {
    const response = await fetch(base + path);
    expect([path, response.status, (await response.text()).includes(hold.lockName)]).toEqual([path, 200, false]);
    expect(response.headers.getSetCookie()).toEqual([]);
  }
  // A path that is no URL is refused like any other, and does not end the command.
  for (const path of ['//', '/%', '/%?%']) expect([path, await statusOf(base, path)]).toEqual([path, 403]);
  const page = await OpenPage.open(base, `?session=${secret}`);
  await page.shows(({ rows }) => rows.has(hold.lockName), 'the lock');
  expect(page.last('hello')).toMatchObject({ actions: false, csrf: null, user: expect.stringContaining('@') });
  command.interrupt();
  expect(await command.ended).toBe(130);
  await page.shows(({ isEnded }) => isEnded, 'the stream has ended');
  expect(command.err).toBe('');
  await hold.release();
});

test('ui --actions frees a lock by the name of the user of the machine; a used port and a wrong host are refused', async () => {
  const client = await openClient();
  const name = freshName();
  const hold = await holdElsewhere(client.getLock(name));
  const command = new Command(['ui', '--json', '--actions'], { env });
  await command.says('}\n');
  const { url } = JSON.parse(command.out) as { url: string };
  const { port } = new URL(url);
  const second = await runCommand(['ui', '--port', port], { env });
  expect([second.code, second.err]).toEqual([2, expect.stringContaining('choose another --port')]);
  const { secret, base } = await enter(url);
  const page = await OpenPage.open(base, '', { 'holdfast-session': secret });
  await page.shows((shown) => shown.last('hello') !== undefined, 'the first event');
  expect(await page.unlock(name, hold.owner)).toEqual([200, { freed: true }]);
  expect((await client.inspect(name)).kind).toBe('free');
  command.interrupt();
  expect(await command.ended).toBe(130);
  await expect(hold.release()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
});

test.each([['-1'], ['65536'], ['1.5'], ['x']])('ui --port %s is refused', async (port) => {
  const { code, err } = await runCommand(['ui', `--port=${port}`], { env });
  expect([code, err]).toEqual([2, expect.stringContaining('--port must be')]);
});

test.each(['SIGHUP', 'SIGTERM'] as const)('ui --open removes the file with its link after %s', async (signal) => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-test-'));
  try {
    // No program opens a browser here: its name leads nowhere.
    const command = new Command(['ui', '--open'], { env: { ...env, TMPDIR: folder, PATH: folder } });
    await until(async () => (await readdir(folder)).length === 1, 'the file is there');
    await command.says('Ctrl-C');
    command.interrupt(signal);
    expect(await command.ended).toBe(130);
    expect(await readdir(folder)).toEqual([]);
  } finally {
    await rm(folder, { recursive: true });
  }
});
