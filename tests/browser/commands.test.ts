import { afterEach, expect, test } from '@jest/globals';
import { openPage } from '../support/browser/browser.js';
import { openInspector, shownRow, shownRows } from '../support/browser/inspected.js';
import { closeClients, holdElsewhere, openClient } from '../support/clients/lock-clients.js';
import { closeServers, serve } from '../support/http/http-server.js';
import { Command } from '../support/processes/command.js';
import { PROJECT_ROOT } from '../support/project/project-files.js';
import { freshName, testRedisBinary, testRedisUrl } from '../support/redis.js';
import { LONG_MS, until } from '../support/time/until.js';

/* The commands that open the page of the inspector, followed as a person follows the link that they print. */

afterEach(async () => {
  await closeServers();
  await closeClients();
});

const LINK = /http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]{32}/;

/** The link that a command prints. */
async function linkOf(command: Command): Promise<string> {
  await command.says(LINK);
  return LINK.exec(command.out)![0];
}

test('holdfast ui: the link opens the page, also after a reload, and no other server on the machine gets its secret', async () => {
  const client = await openClient({ clientName: 'shop' });
  const hold = await holdElsewhere(client.getLock(freshName()));
  const command = new Command(['ui'], { env: { HOLDFAST_URL: testRedisUrl() } });
  const link = await linkOf(command);
  const page = await openInspector(link);
  const shows = () => until(async () => (await shownRow(page, hold.lockName)) !== undefined, 'the row', LONG_MS);
  await shows();
  expect((await shownRow(page, hold.lockName))!.owners).toContain('shop');
  expect(page.url()).not.toContain('token');
  await page.reload();
  await shows();
  expect(await page.browserContext().cookies()).toEqual([]);
  const asked: (string | undefined)[] = [];
  const other = await serve(({ headers, url }, response) => {
    asked.push(headers.cookie, url);
    response.writeHead(200, { 'content-type': 'text/html' }).end('<title>other</title>');
  });
  const secret = await page.evaluate(() => sessionStorage.getItem('holdfast-session'));
  expect(secret).toMatch(/^[\w-]{32}$/);
  await page.goto(other);
  expect(await page.evaluate(() => sessionStorage.getItem('holdfast-session'))).toBeNull();
  expect(asked.filter((each) => each?.includes(secret!))).toEqual([]);
  expect(asked[0]).toBeUndefined();
  const stranger = await openPage({ expected: [/status 403/, /console: .*403/] });
  expect((await stranger.goto(link))!.status()).toBe(403);
  expect(await stranger.content()).not.toContain(hold.lockName);
  await page.close();
  command.interrupt();
  expect(await command.ended).toBe(130);
  await hold.release();
});

test(
  'the demo with --ui: the page shows the locks of its processes while they contend',
  async () => {
    const command = new Command(['--ui'], {
      program: ['--import', 'tsx', `${PROJECT_ROOT}/examples/demo/main.ts`],
      env: { HOLDFAST_REDIS_BINARY: testRedisBinary(), HOLDFAST_DEMO_SECONDS: '6' },
    });
    const page = await openInspector(await linkOf(command));
    await until(
      async () => (await shownRows(page)).some(({ name, owners }) => /^order:4\d$/.test(name) && owners !== ''),
      'a row of the demo',
      LONG_MS,
    );
    await page.close();
    expect(await command.ended).toBe(0);
  },
  6 * LONG_MS,
);
