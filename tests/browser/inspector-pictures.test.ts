import { afterAll, expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'puppeteer-core';
import { createInspector } from '../../src/integrations/inspector/index.js';
import type { PageOptions } from '../support/browser/browser.js';
import { openInspector, openLock } from '../support/browser/inspected.js';
import { clientUrl, closeClients, openClient } from '../support/clients/lock-clients.js';
import { closeServers, serve } from '../support/http/http-server.js';
import { startWorker, type Worker } from '../support/processes/child.js';
import { PROJECT_ROOT } from '../support/project/project-files.js';
import { leavesKeys } from '../support/redis.js';
import { LONG_MS } from '../support/time/until.js';

/*
 * The pictures of the page in docs/inspector.md. Every run draws them and looks at their size. `npm run suite -- pictures-inspector`
 * keeps them: they show times and process ids, so that no two runs draw the same.
 */

const KEPT = process.env.HOLDFAST_PICTURES === '1';
const LOCK = 'order:42';
const TURNS = 6;

const workers: Worker[] = [];
afterAll(async () => {
  await closeServers();
  await Promise.all(workers.map((worker) => worker.close()));
  await closeClients();
});

async function startProcess(clientName: string): Promise<Worker> {
  const worker = await startWorker();
  workers.push(worker);
  await worker.createClient({ url: clientUrl(), clientName });
  return worker;
}

/** Locks of all kinds, in three processes. */
async function fill([checkout, billing, mailer]: readonly [Worker, Worker, Worker]): Promise<void> {
  await checkout.flow('invoice').acquire({ factory: 'getFairLock', name: 'invoice:2026-11' });
  for (const other of [mailer, billing]) {
    void other
      .flow('invoice')
      .acquire({ factory: 'getFairLock', name: 'invoice:2026-11' })
      .catch(() => undefined);
  }
  for (const reader of [checkout, billing]) {
    await reader.flow('catalog').acquire({ factory: 'getReadWriteLock', name: 'catalog', half: 'readLock' });
  }
  await mailer.flow('digest').acquire('mail:digest', { leaseTime: 45_000 });
  await billing.flow('report').acquire({ factory: 'getFencedLock', name: 'cron:nightly-report' });
  await checkout.flow('import').acquire('import:products.csv', { leaseTime: 60_000 });
  const partner = { factory: 'getPermitExpirableSemaphore', name: 'api:partner' };
  await mailer.flow('partner').call(partner, 'trySetPermits', 4);
  for (const at of [1, 2, 3]) await mailer.flow('partner').call(partner, 'acquire', at * 20_000);
  await mailer.flow('hostile').acquire('<img src=x onerror=alert(1)>');
}

/** The processes have the lock one after the other, each until the timeline of the page shows it well. */
async function takeTurns(page: Page, processes: readonly Worker[]): Promise<void> {
  let ended = 0;
  const take = async (worker: Worker): Promise<void> => {
    const flow = worker.flow('turns');
    for (;;) {
      const hold = await flow.acquire(LOCK);
      await page.waitForFunction(
        (owner) => {
          const bar = document.querySelector(`.timeline .hold[data-owner="${owner}"]`);
          return (bar?.getBoundingClientRect().width ?? 0) > 36;
        },
        { timeout: 2 * LONG_MS },
        hold.owner,
      );
      ended += 1;
      // The last one keeps the lock, and the others wait.
      if (ended === TURNS) return;
      await flow.release(hold);
    }
  };
  const turns = processes.map(take);
  // The processes end while two of them wait.
  for (const turn of turns) turn.catch(() => undefined);
  await Promise.race(turns);
}

/** The name of the machine that draws the pictures is no part of them. */
async function picture(page: Page, name: string): Promise<void> {
  await page.evaluate((host) => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text !== null; text = texts.nextNode()) {
      text.nodeValue = text.nodeValue!.replaceAll(host, 'app-1');
    }
    (document.activeElement as HTMLElement).blur();
  }, hostname());
  await page.mouse.move(0, 0);
  const png = Buffer.from(await page.screenshot({ type: 'png' }));
  // A page that shows nothing is smaller.
  expect(png.length).toBeGreaterThan(20_000);
  if (KEPT) writeFileSync(join(PROJECT_ROOT, `docs/pictures/inspector-${name}.png`), png);
}

test(
  'the page is drawn in light, in dark and on a phone',
  async () => {
    leavesKeys('locks that are held until the processes end');
    const processes = [
      await startProcess('checkout'),
      await startProcess('billing'),
      await startProcess('mailer'),
    ] as const;
    await fill(processes);
    const client = await openClient({ clientName: 'admin' });
    const url = await serve(createInspector({ client, authorize: () => 'ada', actions: true }));
    const open = async (options: PageOptions): Promise<Page> => {
      const page = await openInspector(url, options);
      await page.waitForFunction(() => document.querySelectorAll('#locks tbody tr').length >= 6);
      return page;
    };
    const light = await open({ width: 1_320, height: 820 });
    const phone = await open({ width: 390, height: 844, scale: 2 });
    const first = processes[0].flow('first');
    const hold = await first.acquire(LOCK);
    await openLock(light, LOCK);
    await openLock(phone, LOCK);
    await first.release(hold);
    await takeTurns(light, [processes[1], processes[2], processes[0]]);
    await picture(light, 'light');
    await picture(phone, 'phone');
    await picture(await open({ colors: 'dark', width: 1_320, height: 620 }), 'dark');
  },
  12 * LONG_MS,
);
