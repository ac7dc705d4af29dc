import { afterEach, describe, expect, test } from '@jest/globals';
import type { Socket } from 'node:net';
import type { Page } from 'puppeteer-core';
import { createInspector, type InspectorOptions } from '../../src/integrations/inspector/index.js';
import { axeViolations } from '../support/browser/axe.js';
import { openPage, type PageOptions } from '../support/browser/browser.js';
import {
  focused,
  lockIsShown,
  openInspector,
  openLock,
  openView,
  overflowOf,
  shownRow,
  shownRows,
  VIEWS,
} from '../support/browser/inspected.js';
import {
  clientUrl,
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
  outcome,
} from '../support/clients/lock-clients.js';
import { closeServers, serve } from '../support/http/http-server.js';
import { startWorker, type Worker } from '../support/processes/child.js';
import { admin, freshName, leavesKeys } from '../support/redis.js';
import { LONG_MS, until } from '../support/time/until.js';

/* The page of the inspector in a real browser, on its real server, with clients in this process and in others. */

const workers: Worker[] = [];

afterEach(async () => {
  await closeServers();
  await Promise.all(workers.splice(0).map((worker) => worker.close()));
  await closeClients();
});

/** A process with a client of this name. */
async function startProcess(clientName: string): Promise<Worker> {
  const worker = await startWorker();
  workers.push(worker);
  await worker.createClient({ url: clientUrl(), clientName });
  return worker;
}

/** The address of an inspector. */
async function startInspector(options: Partial<InspectorOptions> = {}): Promise<string> {
  const client = options.client ?? (await openClient({ clientName: 'inspector' }));
  return serve(createInspector({ authorize: () => 'ada', ...options, client }));
}

const open = async (options: Partial<InspectorOptions> = {}, page: PageOptions = {}): Promise<Page> =>
  openInspector(await startInspector(options), page);

const shows = async (page: Page, name: string, fact: (row: Awaited<ReturnType<typeof shownRow>>) => boolean) =>
  until(async () => fact(await shownRow(page, name)), `the row of ${name}`, 2 * LONG_MS);

/** The time that is left, as a row shows it, in s. */
const secondsOf = (row: { lease: string } | undefined): number => Number(/([\d.]+) s/.exec(row?.lease ?? '')?.[1]);

test('a row appears with its process and its waiters, its lease counts down, and it goes with the release', async () => {
  const [shop, other, name] = [await startProcess('shop'), await startProcess('other'), freshName()];
  const page = await open();
  expect(await shownRows(page)).toEqual([]);
  const flow = shop.flow('first');
  const hold = await flow.acquire(name, { leaseTime: 30_000 });
  await shows(page, name, (row) => row !== undefined);
  const row = (await shownRow(page, name))!;
  expect(row).toMatchObject({ kind: 'lock', waiters: '–' });
  expect(row.owners).toContain('shop');
  expect(row.owners).toContain(String(shop.pid));
  const before = secondsOf(row);
  expect(before).toBeGreaterThan(10);
  await shows(page, name, (later) => secondsOf(later) < before - 1.5);
  const waiting = other.flow('second').acquire(name, { signal: 'leave' });
  await shows(page, name, (now) => now?.waiters === '1');
  await other.abort('leave');
  await outcome(waiting);
  await shows(page, name, (now) => now?.waiters === '–');
  await flow.release(hold);
  await shows(page, name, (now) => now === undefined);
});

test('the row of a killed process counts down to the end of its lease, and disappears', async () => {
  const [shop, name] = [await startProcess('shop'), freshName()];
  const page = await open();
  await shop.flow('first').acquire(name, { leaseTime: 6_000 });
  await shows(page, name, (row) => row?.owners.includes('shop') === true);
  await shop.kill9();
  await shows(page, name, (row) => row === undefined);
  expect(await admin().exists(name)).toBe(0);
});

test('a waiting process gets the lock, and the page shows the next owner and the hand-over in the timeline', async () => {
  const [shop, mail, name] = [await startProcess('shop'), await startProcess('mail'), freshName()];
  const [first, second] = [shop.flow('first'), mail.flow('second')];
  const hold = await first.acquire(name);
  const page = await open();
  await openLock(page, name);
  expect(await focused(page)).toBe('#title-lock');
  const waiting = second.acquire(name);
  await page.waitForFunction(() => document.querySelector('#lock')!.textContent.includes('1 client'));
  await first.release(hold);
  const next = await waiting;
  await page.waitForFunction(() => document.querySelectorAll('.timeline .hold').length >= 2);
  await page.waitForFunction(() => document.querySelector('.owners-list .client')?.textContent === 'mail');
  const lanes = [`shop · ${shop.pid}`, `mail · ${mail.pid}`, 'waiting clients'];
  const drawn = () => page.$$eval('.timeline .lane', (texts) => texts.map(({ textContent }) => textContent));
  await until(async () => (await drawn()).join() === lanes.join(), 'each process has its lane');
  await second.release(next);
  await page.waitForFunction(() => document.querySelector('#lock .kind')!.textContent.startsWith('Nothing is locked'));
});

describe('free a lock', () => {
  /** Opens the dialog for a lock of the process `shop`. */
  async function ask(opened = open({ actions: true })) {
    const [shop, name] = [await startProcess('shop'), freshName()];
    const flow = shop.flow('first');
    const hold = await flow.acquire(name, { leaseTime: 60_000 });
    const page = await opened;
    await openLock(page, name);
    await page.click('.owners-list button');
    await page.waitForSelector('#unlock[open]');
    expect(await focused(page)).toBe('#unlock-name');
    return { name, flow, hold, page };
  }
  const isDisabled = (page: Page): Promise<boolean> =>
    page.$eval('#unlock-confirm', (button) => (button as HTMLButtonElement).disabled);

  test('the dialog names the owner and asks for the name; then the lock is free, and the user is in the event', async () => {
    const client = await openClient();
    const freed: unknown[] = [];
    client.events.on('forceUnlocked', (event) => freed.push(event));
    const { name, hold, page } = await ask(open({ client, actions: true }));
    const text = await page.$eval('#unlock', (dialog) => (dialog as HTMLElement).innerText);
    expect([text.includes(name), text.includes('shop'), text.includes(hold.owner)]).toEqual([true, true, true]);
    expect(await isDisabled(page)).toBe(true);
    await page.type('#unlock-name', name.slice(0, -1));
    await page.keyboard.press('Enter');
    expect(await isDisabled(page)).toBe(true);
    expect(await admin().exists(name)).toBe(1);
    await page.type('#unlock-name', name.slice(-1));
    await page.click('#unlock-confirm');
    await page.waitForFunction(() => document.querySelector('#announcer')!.textContent.endsWith('was freed.'));
    expect(await page.$('#unlock[open]')).toBeNull();
    expect(await admin().exists(name)).toBe(0);
    expect(freed).toMatchObject([{ lockName: name, owner: hold.owner, by: 'ada', result: 'freed' }]);
  });

  test('an owner that has changed meanwhile keeps the lock, and the page says so', async () => {
    const { name, flow, hold, page } = await ask();
    await flow.release(hold);
    const next = await flow.acquire(name, { leaseTime: 60_000 });
    await page.type('#unlock-name', name);
    await page.click('#unlock-confirm');
    await page.waitForFunction(() => document.querySelector('#unlock-outcome')!.textContent.startsWith('Not freed'));
    expect(await admin().hkeys(name)).toEqual([next.owner]);
    expect(await isDisabled(page)).toBe(true);
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('#unlock[open]') === null);
    await flow.release(next);
  });

  test('the page says that it does not know, if the answer is lost', async () => {
    const inspector = createInspector({ client: await openClient(), authorize: () => 'ada', actions: true });
    const url = await serve((request, response) => {
      // The lock is freed, and the connection ends before the reply.
      if (request.method === 'POST') response.end = () => response.destroy();
      inspector(request, response);
    });
    const { name, flow, hold, page } = await ask(
      openInspector(url, { expected: [/^no response: .*unlock/, /^console: .*ERR_/] }),
    );
    await page.type('#unlock-name', name);
    await page.click('#unlock-confirm');
    await page.waitForFunction(() => document.querySelector('#unlock-outcome')!.textContent.startsWith('No answer'));
    expect(await isDisabled(page)).toBe(true);
    expect(await focused(page)).toBe('#unlock-cancel');
    expect(await admin().exists(name)).toBe(0);
    expect(await outcome(flow.release(hold))).toBe('ERR_LOCK_LOST');
  });

  test('the keyboard alone finds the lock, frees it, and goes back to the table', async () => {
    const [shop, name] = [await startProcess('shop'), freshName()];
    await shop.flow('first').acquire(name, { leaseTime: 60_000 });
    const page = await open({ actions: true });
    await shows(page, name, (row) => row !== undefined);
    /** Presses Tab until the focus is where the test wants it. */
    const tabTo = async (wanted: string): Promise<void> => {
      for (let presses = 0; presses < 40; presses += 1) {
        await page.keyboard.press('Tab');
        if ((await focused(page)) === wanted) return;
      }
      throw new Error(`40 times Tab does not lead to ${wanted}`);
    };
    await tabTo('#skip');
    await page.keyboard.press('Enter');
    expect(await focused(page)).toBe('#content');
    await tabTo('#search-locks');
    await page.keyboard.type(name);
    await tabTo(name);
    await page.keyboard.press('Enter');
    await lockIsShown(page);
    expect(await focused(page)).toBe('#title-lock');
    await tabTo('Free this lock…');
    expect(await page.evaluate(() => getComputedStyle(document.activeElement!).outlineStyle)).toBe('solid');
    await page.keyboard.press('Enter');
    expect(await focused(page)).toBe('#unlock-name');
    await page.keyboard.press('Escape');
    expect(await focused(page)).toBe('Free this lock…');
    await page.keyboard.press('Enter');
    await page.keyboard.type(name);
    await page.keyboard.press('Enter');
    await until(async () => (await admin().exists(name)) === 0, 'the lock is free');
    await page.waitForFunction(() => document.activeElement!.id === 'title-lock');
    await page.keyboard.press('Escape');
    await page.waitForSelector('body[data-view=locks]');
    // The row of the lock goes, and the focus with it to what is left.
    await page.waitForFunction(() => document.activeElement!.id === 'search-locks');
  });

  test('without actions there is no button', async () => {
    const [client, name] = [await openClient(), freshName()];
    await holdElsewhere(client.getLock(name));
    const page = await open();
    await openLock(page, name);
    expect(await page.$$('.owners-list li')).toHaveLength(1);
    expect(await page.$('.owners-list button:not([hidden])')).toBeNull();
  });
});

test('hostile names and texts stay text, and their invisible characters are shown', async () => {
  const client = await openClient();
  const html = `${freshName()}<img src=x onerror="document.title='run'"><script>document.title='run'</script>`;
  const reversed = `${freshName()}\u202egnp.exe\u0007\u200b\n<b>\u2028\u2029`;
  await Promise.all([html, reversed].map((name) => holdElsewhere(client.getLock(name))));
  const page = await open({ client, authorize: () => '<i>ada</i>\u202e' });
  await shows(page, html, (row) => row !== undefined);
  const shown = reversed
    .replace('\u202e', '\\u{202e}')
    .replace('\u0007\u200b\n', '\\u{7}\\u{200b}\\n')
    .replace('\u2028\u2029', '\\u{2028}\\u{2029}');
  await shows(page, shown, (row) => row !== undefined);
  expect(await page.$eval('#client', ({ textContent }) => textContent)).toContain('<i>ada</i>\\u{202e}');
  for (const name of [html, shown]) {
    await openLock(page, name);
    expect(await page.$eval('#title-lock', ({ textContent }) => textContent)).toBe(name);
    expect(await page.title()).toBe(`${name} · Holdfast`);
    await openView(page, 'locks');
  }
  await openView(page, 'process');
  await page.waitForFunction(() => document.querySelectorAll('#holds tbody tr').length === 2);
  expect(await page.$$('img, main script, b, i')).toEqual([]);
});

test('a visitor who is not authorized sees nothing', async () => {
  const [client, name] = [await openClient(), freshName()];
  await holdElsewhere(client.getLock(name));
  let isAllowed = false;
  const url = await startInspector({ client, authorize: () => isAllowed });
  const stranger = await openPage({ expected: [/^status 403/, /^console: .*403/] });
  for (const path of ['', 'inspector.js', `events?select=${encodeURIComponent(name)}`]) {
    const response = (await stranger.goto(`${url}/${path}`))!;
    expect(response.status()).toBe(403);
    const text = await stranger.content();
    expect([text.includes(name), text.includes('<table')]).toEqual([false, false]);
  }
  isAllowed = true;
  const page = await openInspector(url, { expected: [/^status 403/, /^console: .*403/] });
  await shows(page, name, (row) => row !== undefined);
  // The next stream asks again. The page says why it has none, and a button tries again.
  isAllowed = false;
  await page.type('#search-locks', 'x');
  await page.waitForSelector('#trouble:not([hidden])');
  expect(await page.$eval('#state', ({ textContent }) => textContent)).toBe('Disconnected');
  isAllowed = true;
  await page.click('#trouble button');
  await page.waitForSelector('#connection[data-state=live]');
  await page.waitForSelector('#trouble[hidden]');
});

test('the page works under a base path, and asks nothing outside of it', async () => {
  const [client, name] = [await openClient(), freshName()];
  const hold = await holdElsewhere(client.getLock(name), 60_000);
  const inspector = createInspector({ client, authorize: () => true, actions: true, basePath: '/admin/locks' });
  const url = await serve((request, response) => inspector(request, response));
  const page = await openPage();
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(`${url}/admin/locks`);
  await openLock(page, name);
  await page.click('.owners-list button');
  await page.type('#unlock-name', name);
  await page.keyboard.press('Enter');
  await until(async () => (await admin().exists(name)) === 0, 'the lock is free');
  const outside = asked.filter((address) => !address.startsWith(`${url}/admin/locks`) && !address.startsWith('data:'));
  expect(outside).toEqual([]);
  expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
});

test('more rows come with a button, and the search finds a name among all', async () => {
  leavesKeys('450 locks that no client holds');
  const names = Array.from({ length: 450 }, () => freshName());
  const owner = '8743c9c0-0795-4907-87fd-6c719a6b4586:52';
  await Promise.all(names.flatMap((name) => [admin().hset(name, owner, '1'), admin().pexpire(name, 120_000)]));
  const page = await open();
  const rows = (wanted: number): Promise<unknown> =>
    page.waitForFunction((count) => document.querySelectorAll('#locks tbody tr').length === count, {}, wanted);
  await rows(200);
  await page.waitForFunction(() => document.querySelector('#more')!.textContent === 'Show 200 more');
  await page.click('#more');
  await rows(400);
  await page.waitForFunction(() => document.querySelector('#more')!.textContent === 'Show 50 more');
  await page.click('#more');
  await rows(450);
  await page.waitForSelector('#more[hidden]');
  await page.type('#search-locks', names[449]!);
  await rows(1);
  expect((await shownRows(page))[0]!.name).toBe(names[449]);
  await page.waitForFunction(() => document.querySelector('#announcer')!.textContent === '1 name matches');
});

test('a page out of sight ends its stream after a minute, and opens it again when it is looked at', async () => {
  const [client, name] = [await openClient(), freshName()];
  const inspector = createInspector({ client, authorize: () => true });
  let streams = 0;
  const url = await serve((request, response) => {
    if (request.url!.includes('/events')) {
      streams += 1;
      response.once('close', () => (streams -= 1));
    }
    inspector(request, response);
  });
  const page = await openPage();
  // The minute of the page is over at once.
  await page.evaluateOnNewDocument(() => {
    const start = window.setTimeout.bind(window);
    window.setTimeout = ((run: () => void, ms?: number) => start(run, ms === 60_000 ? 0 : ms)) as typeof setTimeout;
  });
  const look = (state: 'hidden' | 'visible'): Promise<void> =>
    page.evaluate((is) => {
      Object.defineProperty(document, 'visibilityState', { configurable: true, value: is });
      document.dispatchEvent(new Event('visibilitychange'));
    }, state);
  await page.goto(url);
  await page.waitForSelector('#connection[data-state=live]');
  await look('hidden');
  await page.waitForSelector('#connection[data-state=paused]');
  await until(() => streams === 0, 'the stream has ended');
  const hold = await holdElsewhere(client.getLock(name));
  expect(await shownRow(page, name)).toBeUndefined();
  await look('visible');
  await page.waitForSelector('#connection[data-state=live]');
  await shows(page, name, (row) => row !== undefined);
  await hold.release();
});

test('the page says that its connection is lost, and connects again by itself', async () => {
  const [client, name] = [await openClient(), freshName()];
  const inspector = createInspector({ client, authorize: () => true });
  const sockets = new Set<Socket>();
  let isDown = false;
  const url = await serve((request, response) => {
    sockets.add(request.socket);
    if (isDown) request.socket.destroy();
    else inspector(request, response);
  });
  const page = await openInspector(url, { expected: [/ERR_/] });
  isDown = true;
  for (const socket of sockets) socket.destroy();
  await page.waitForSelector('body.stale #connection[data-state=lost]');
  expect(await page.$eval('#state', ({ textContent }) => textContent)).toMatch(/^Reconnecting since \d\d:\d\d:\d\d$/);
  isDown = false;
  await page.waitForSelector('body:not(.stale) #connection[data-state=live]');
  // The server says that it ends: the page says so, too, and comes again.
  inspector.close();
  await page.waitForSelector('body.stale #trouble:not([hidden])');
  const hold = await holdElsewhere(client.getLock(name));
  await shows(page, name, (row) => row !== undefined);
  expect(await page.$eval('#state', ({ textContent }) => textContent)).toBe('Live');
  await hold.release();
});

test('while Redis is unavailable the page says since when, rows are grey and their times stop; then it goes on', async () => {
  const { proxy, url } = await openProxy();
  const [client, other, name] = [await openClient({ url, commandTimeout: 900 }), await openClient(), freshName()];
  const hold = await holdElsewhere(other.getLock(name), 50_000);
  const page = await open({ client });
  await shows(page, name, (row) => row !== undefined);
  const stall = proxy.stall();
  await page.waitForSelector('body.stale #connection[data-state=unavailable]');
  expect(await page.$eval('#state', ({ textContent }) => textContent)).toMatch(
    /^Redis unavailable since \d\d:\d\d:\d\d$/,
  );
  await page.waitForFunction(() =>
    document.querySelector('#problems')!.textContent.startsWith('Redis does not answer.'),
  );
  // Longer than two updates of the times. The last one may come after the times have stopped, and shows that moment.
  const twoUpdates = () => page.evaluate(() => new Promise((resume) => setTimeout(resume, 600)));
  await twoUpdates();
  const before = await shownRow(page, name);
  expect(before).toBeDefined();
  await twoUpdates();
  expect(await shownRow(page, name)).toEqual(before);
  stall.lift();
  await page.waitForSelector('body:not(.stale) #connection[data-state=live]');
  await page.waitForSelector('#problems[hidden]');
  await shows(page, name, (row) => secondsOf(row) < secondsOf(before) - 1);
  await hold.release();
});

/** Something for each view: locks of each look, semaphores, holds, waiting calls and a queue. */
async function fillViews(): Promise<{ readonly page: (options: PageOptions) => Promise<Page>; readonly name: string }> {
  leavesKeys('a semaphore outlives its permits');
  const [client, other] = [await openClient({ clientName: 'checkout' }), await openClient({ clientName: 'mailer' })];
  const [name, fair, permits] = [freshName('x'.repeat(150)), freshName('fair'), freshName('permits')];
  await holdElsewhere(other.getLock(name), 120_000);
  await holdElsewhere(client.getFairLock(fair));
  const [semaphore, over] = [client.getPermitExpirableSemaphore(permits, { permits: 3 }), new AbortController()];
  await semaphore.acquire(90_000);
  const calls = [
    inFlow(() => client.getLock(name).acquire({ signal: over.signal })),
    inFlow(() => other.getFairLock(fair).acquire({ signal: over.signal })),
  ];
  cleanUps.push(async () => {
    over.abort();
    await Promise.allSettled(calls);
  });
  const url = await startInspector({ client, actions: true });
  return { name, page: (options) => openInspector(url, options) };
}
const cleanUps: (() => Promise<void>)[] = [];

describe('every view', () => {
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0)) await cleanUp();
  });

  /** Opens each view in turn, at last one lock and the dialog, when there is something in it. */
  async function eachView(page: Page, name: string, look: (view: string) => Promise<void>): Promise<void> {
    await page.waitForFunction(() => document.querySelectorAll('#locks tbody tr').length === 2);
    for (const view of VIEWS) {
      await openView(page, view);
      const content = {
        locks: '#locks tr',
        semaphores: '.card',
        waits: '#waits tr',
        process: '#holds tr',
        doctor: '.finding',
      };
      await page.waitForSelector(content[view]);
      await look(view);
    }
    await openView(page, 'locks');
    await openLock(page, name);
    await look('lock');
    await page.click('.owners-list button');
    await look('dialog');
  }

  test('each view shows what the server knows: permits, waits, own holds with their lines of code, findings', async () => {
    const { page: openIt, name } = await fillViews();
    const page = await openIt({});
    const told: Readonly<Record<string, RegExp>> = {
      semaphores: /2 free · 1 taken[^]*1 min \d+ s/,
      // The call of this process waits for the other client, whose own call waits in a queue.
      waits: /a call of this process\s+inspector\.test\.ts:\d+[^]*mailer[^]*Most contended locks[^]*xxx/,
      process: /granted\s+\d+[^]*lock-clients\.ts:\d+[^]*renewed[^]*Waiting calls[^]*inspector\.test\.ts:\d+/,
      doctor: /(ok|note)\s+version\s/,
      lock: /mailer[^]*for at least \d+ s[^]*1 client/,
    };
    const seen: string[] = [];
    await eachView(page, name, async (view) => {
      const wanted = told[view];
      if (wanted === undefined) return;
      const isShown = async (): Promise<boolean> => wanted.test(await page.$eval('main', (main) => main.innerText));
      await until(isShown, `${view} shows ${String(wanted)}`);
      seen.push(view);
    });
    expect(seen).toEqual(Object.keys(told));
  });

  test.each(['light', 'dark'] as const)(
    'axe finds nothing in any view in %s colours',
    async (colors) => {
      const { page: openIt, name } = await fillViews();
      for (const width of [1_280, 360]) {
        const page = await openIt({ colors, width });
        await eachView(page, name, async (view) => {
          expect([width, view, await axeViolations(page)]).toEqual([width, view, []]);
        });
      }
    },
    12 * LONG_MS,
  );

  test(
    'no view is wider than a phone, whatever the names are',
    async () => {
      const { page: openIt, name } = await fillViews();
      const page = await openIt({ width: 360, height: 740 });
      await eachView(page, name, async (view) => {
        expect([view, await overflowOf(page)]).toEqual([view, 0]);
      });
    },
    6 * LONG_MS,
  );
});
