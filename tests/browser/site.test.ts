import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { existsSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'puppeteer-core';
import { axeViolations, type Exception } from '../support/browser/axe.js';
import { openPage } from '../support/browser/browser.js';
import { closeServers, serve } from '../support/http/http-server.js';
import { PROJECT_ROOT, projectFiles, readProjectFile } from '../support/project/project-files.js';
import { LONG_MS } from '../support/time/until.js';

/* The site that `npm run docs` builds, in a real browser: from a server on this machine, and from the files alone. */

const SITE = join(PROJECT_ROOT, 'site');
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
};

const NESTED: Exception = {
  rule: 'nested-interactive',
  selector: 'summary.tsd-accordion-summary',
  reason:
    'TypeDoc puts links into the summaries of its lists, the navigation in the script of the page; keys reach both',
};

let site: string;
beforeAll(async () => {
  if (!existsSync(SITE)) throw new Error('there is no folder site: npm run docs builds it');
  site = await serve((request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? '', 'http://site').pathname);
    const file = join(SITE, path);
    if (!file.startsWith(SITE) || !existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { 'content-type': MEDIA_TYPES[extname(file)] ?? 'application/octet-stream' });
    response.end(readFileSync(file));
  });
});
afterAll(() => closeServers());

/** The pages of the guide, and some of each kind of the reference. */
const guidePages = projectFiles('site/documents', '.html').map((path) => path.slice('site/'.length));
const reference = ['index.html', 'modules.html', 'hierarchy.html'].concat(
  ['modules/index', 'modules/integrations_nest', 'interfaces/index.LockClient', 'interfaces/index.ClientOptions'].map(
    (name) => `${name}.html`,
  ),
  ['classes/index.LockLostError', 'functions/index.createClient', 'types/index.LockErrorCode'].map(
    (name) => `${name}.html`,
  ),
);

/** Opens a page of the site and waits until its scripts have shown it. */
async function visit(page: Page, path: string, from = site): Promise<void> {
  await page.goto(`${from}/${path.split('/').map(encodeURIComponent).join('/')}`);
  await page.waitForFunction(() => {
    const navigation = document.querySelector('#tsd-nav-container');
    return document.body.style.display !== 'none' && (navigation?.childElementCount ?? 1) > 0;
  });
}

/** Chromium refuses the icons of a file to another file. The script icons.js then puts them into the page. */
const REFUSED_ICONS = [/\/assets\/icons\.svg#/];

test.each([
  ['a server on this machine', () => site, []],
  ['the files alone, without a server', () => pathToFileURL(SITE).href, REFUSED_ICONS],
])('the search finds "fencing" on %s', async (_name, from, expected) => {
  const page = await openPage({ expected });
  await visit(page, 'index.html', from());
  await page.click('#tsd-search-trigger');
  await page.type('#tsd-search-input', 'fencing');
  await page.waitForSelector('#tsd-search-results a[href*="Fencing.html"]');
  await page.click('#tsd-search-results a[href*="Fencing.html"]');
  await page.waitForFunction(() => document.querySelector('h1')?.textContent?.includes('stop a holder'));
});

test.each([
  ['nest', 'Recipes'],
  ['express', 'Recipes'],
  ['redlock', 'Coming from redlock'],
  ['process does not exit', 'Troubleshooting'],
  ['ERR_LOCK_LOST', 'Errors'],
  ['LockTimeoutError', 'Errors'],
  ['test my code', 'Testing your code'],
  ['what is locked', 'What is locked'],
])('the search for "%s" lists the page "%s" among its first three results', async (query, name) => {
  const page = await openPage();
  await visit(page, 'index.html');
  await page.click('#tsd-search-trigger');
  await page.type('#tsd-search-input', query);
  await page.waitForFunction(
    (wanted) => {
      const results = [...document.querySelectorAll('#tsd-search-results li')].slice(0, 3);
      return results.some((result) => result.textContent === wanted);
    },
    {},
    name,
  );
});

test('the button of a code block copies its code', async () => {
  const page = await openPage();
  await page.browserContext().setPermission(site, { permission: { name: 'clipboard-read' }, state: 'granted' });
  await visit(page, 'documents/Getting_started.html');
  await page.click('pre:has(code.ts) button');
  await page.waitForFunction(() => document.querySelector('pre:has(code.ts) button')?.textContent === 'Copied!');
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied.trim()).toBe(/```ts\n([^]+?)\n```/.exec(readProjectFile('docs/getting-started.md'))![1]);
});

test('dark mode follows the system, and the setting of the page overrides it and stays', async () => {
  const page = await openPage({ colors: 'dark' });
  /** The brightness of the page's background, from 0 to 255. */
  const brightness = () =>
    page.evaluate(() => {
      const parts = /(\d+), (\d+), (\d+)/.exec(getComputedStyle(document.body).backgroundColor)!.slice(1);
      return parts.reduce((sum, part) => sum + Number(part) / 3, 0);
    });
  await visit(page, 'documents/Fencing.html');
  expect(await brightness()).toBeLessThan(80);
  await page.select('#tsd-theme', 'light');
  expect(await brightness()).toBeGreaterThan(200);
  await visit(page, 'documents/Ownership.html');
  expect(await brightness()).toBeGreaterThan(200);
});

describe.each(['light', 'dark'] as const)('in %s colours', (colors) => {
  test.each([
    ['of the guide', guidePages, 40],
    ['of the reference', reference, 10],
  ])(
    'axe finds nothing on the pages %s',
    async (_name, pages, least) => {
      expect(pages.length).toBeGreaterThanOrEqual(least);
      const page = await openPage({ colors });
      const found: Record<string, string[]> = {};
      for (const path of pages) {
        await visit(page, path);
        const violations = await axeViolations(page, [NESTED]);
        if (violations.length > 0) found[path] = violations;
      }
      expect(found).toEqual({});
    },
    60 * LONG_MS,
  );
});
