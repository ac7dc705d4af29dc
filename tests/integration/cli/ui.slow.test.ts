import { afterEach, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { closeClients, holdElsewhere, openClient } from '../../support/clients/lock-clients.js';
import { OpenPage } from '../../support/http/event-stream.js';
import { Command, runCommand } from '../../support/processes/command.js';
import { freshName, testRedisUrl } from '../../support/redis.js';

afterEach(closeClients);

const env = { HOLDFAST_URL: testRedisUrl() };

/** Follows the link that the command printed, as a browser does. */
async function enter(url: string): Promise<{ status: number; cookie: string; base: string }> {
  const response = await fetch(url, { redirect: 'manual' });
  const [cookie = ''] = response.headers.getSetCookie();
  return { status: response.status, cookie, base: new URL(url).origin };
}

/** The status of a request for exactly this path: `fetch` would change the path. */
async function statusOf(base: string, path: string): Promise<number> {
  const sent = get(base, { path, agent: false });
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode!;
}

test('ui: the link works once, its cookie opens the page, and Ctrl-C ends it', async () => {
  const client = await openClient({ clientName: 'shop' });
  const hold = await holdElsewhere(client.getLock(freshName()));
  const command = new Command(['ui', '--json'], { env });
  await command.says('}\n');
  const { url } = JSON.parse(command.out) as { url: string };
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]{32}$/);
  const { status, cookie, base } = await enter(url);
  expect(status).toBe(200);
  expect(cookie).toMatch(/^holdfast_ui_\d+=[\w-]{32}; HttpOnly; SameSite=Strict; Path=\/$/);
  expect((await enter(url)).status).toBe(403);
  expect((await enter(`${base}/?token=x`)).status).toBe(403);
  for (const path of ['/', '/inspector.css', '/inspector.js', '/events']) {
    expect([path, (await fetch(base + path)).status]).toEqual([path, 403]);
  }
  // A path that is no URL is refused like any other, and does not end the command.
  for (const path of ['//', '/%', '/?%']) expect([path, await statusOf(base, path)]).toEqual([path, 403]);
  const headers = { cookie: cookie.split(';')[0]! };
  expect((await fetch(base, { headers })).status).toBe(200);
  const page = await OpenPage.open(base, '', headers);
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
  const { cookie, base } = await enter(url);
  const headers = { cookie: cookie.split(';')[0]! };
  const page = await OpenPage.open(base, '', headers);
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
