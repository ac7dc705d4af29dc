import type { Page } from 'puppeteer-core';
import { openPage, type PageOptions } from './browser.js';

/** The cells of a row as they are shown, by their columns. */
export interface ShownRow {
  readonly name: string;
  readonly kind: string;
  readonly owners: string;
  readonly lease: string;
  readonly waiters: string;
}

export const VIEWS = ['locks', 'semaphores', 'waits', 'process', 'doctor'] as const;

/** Opens the page of an inspector and waits until it shows what the server knows. */
export async function openInspector(url: string, options: PageOptions = {}): Promise<Page> {
  const page = await openPage(options);
  await page.goto(url);
  await page.waitForSelector('#connection[data-state=live]');
  return page;
}

/** The rows of the table of locks that a person sees, from the top. */
export function shownRows(page: Page): Promise<ShownRow[]> {
  return page.$$eval('#locks tbody tr', (rows) =>
    rows.map((row) => {
      const [name, kind, owners, lease, waiters] = [...row.children].map((cell) => (cell as HTMLElement).innerText);
      return { name, kind, owners, lease, waiters } as ShownRow;
    }),
  );
}

export async function shownRow(page: Page, name: string): Promise<ShownRow | undefined> {
  return (await shownRows(page)).find((row) => row.name === name);
}

/** Opens a view by its link. */
export async function openView(page: Page, view: (typeof VIEWS)[number]): Promise<void> {
  await page.click(`nav a[href="#${view}"]`);
  await page.waitForSelector(`body[data-view=${view}] #view-${view}:not([hidden])`);
}

/** Opens one lock by the link in its row, and waits for its details. */
export async function openLock(page: Page, name: string): Promise<void> {
  await page.waitForFunction(
    (wanted) => [...document.querySelectorAll('#locks tbody a')].some((link) => link.textContent === wanted),
    {},
    name,
  );
  const links = await page.$$('#locks tbody a');
  for (const link of links) {
    if ((await link.evaluate(({ textContent }) => textContent)) !== name) continue;
    await link.click();
    break;
  }
  await lockIsShown(page);
}

/** The details of the selected lock have come. */
export async function lockIsShown(page: Page): Promise<void> {
  await page.waitForFunction(() => {
    const kind = document.querySelector('#lock .kind')?.textContent ?? 'Loading';
    return document.body.dataset['view'] === 'lock' && kind !== 'Loading';
  });
}

/** How much wider the page is than its window, in pixels. */
export const overflowOf = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);

/** The text of the element that has the focus, or its id. */
export const focused = (page: Page): Promise<string> =>
  page.evaluate(() => {
    const { id, textContent } = document.activeElement ?? {};
    return id !== undefined && id !== '' ? `#${id}` : (textContent ?? '').trim();
  });
