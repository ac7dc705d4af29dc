import { afterAll, afterEach, beforeAll, expect } from '@jest/globals';
import { launch, type Browser, type BrowserContext, type Page } from 'puppeteer-core';
import { reaped, reapWithUs } from '../processes/reaper.js';
import { LONG_MS } from '../time/until.js';
import { findChromium, ADVICE } from './chromium.mjs';

/*
 * A file that imports this module gets one browser. Each page has storage and cookies of its own. A test fails if one of
 * its pages reports an error: an exception, an error in the console (a violation of the Content-Security-Policy, too), a
 * request without a response, or a response with the status 400 or more.
 */

export interface PageOptions {
  readonly colors?: 'light' | 'dark';
  readonly width?: number;
  readonly height?: number;
  /** Pixels of the screen for each pixel of the page, for pictures. */
  readonly scale?: number;
  /** Errors that the test causes. Each of these has to occur. */
  readonly expected?: readonly RegExp[];
}

interface Opened {
  readonly context: BrowserContext;
  readonly problems: string[];
  readonly expected: readonly RegExp[];
}

let browser: Browser;
const opened: Opened[] = [];

beforeAll(async () => {
  const executablePath = findChromium();
  if (executablePath === undefined) throw new Error(`There is no Chromium on this machine.\n${ADVICE}`);
  // Chromium refuses to run its sandbox as root. /dev/shm may be too small for it in a container.
  const args = [...(process.getuid?.() === 0 ? ['--no-sandbox'] : []), '--disable-dev-shm-usage'];
  browser = await launch({ executablePath, args, timeout: 3 * LONG_MS });
  reapWithUs(browser.process()!.pid!);
}, 4 * LONG_MS);

afterEach(async () => {
  const pages = opened.splice(0);
  const found = pages.flatMap(({ problems, expected }) => [
    ...problems.filter((problem) => !expected.some((each) => each.test(problem))),
    ...expected.filter((each) => !problems.some((problem) => each.test(problem))).map((each) => `no ${String(each)}`),
  ]);
  await Promise.all(pages.map(({ context }) => context.close()));
  expect(found).toEqual([]);
});

afterAll(async () => {
  const { pid } = browser.process()!;
  await browser.close();
  reaped(pid!);
});

/** Opens an empty page. */
export async function openPage(options: PageOptions = {}): Promise<Page> {
  const { colors = 'light', width = 1280, height = 900, scale = 1, expected = [] } = options;
  const context = await browser.createBrowserContext();
  const problems: string[] = [];
  opened.push({ context, problems, expected });
  const page = await context.newPage();
  page.setDefaultTimeout(LONG_MS);
  page.on('pageerror', (error) => problems.push(`exception: ${String(error)}`));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(`console: ${message.text()} ${message.location().url ?? ''}`);
  });
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText ?? 'cancelled';
    // The page itself has ended the request.
    if (reason !== 'net::ERR_ABORTED') problems.push(`no response: ${request.url()} ${reason}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 400) problems.push(`status ${response.status()}: ${response.url()}`);
  });
  await page.setViewport({ width, height, deviceScaleFactor: scale });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: colors }]);
  return page;
}
