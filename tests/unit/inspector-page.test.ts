import { expect, test } from '@jest/globals';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { PROJECT_ROOT, projectFiles, readProjectFile } from '../support/project/project-files.js';

/* The files of the inspector's page, as the server sends them. tests/browser opens the page. */

const { pageText } = createRequire(import.meta.url)('../../.ci/page-text.cjs') as {
  pageText: (path: string) => string;
};
const PAGE = 'src/integrations/inspector/page';
const [html, css, script] = ['html', 'css', 'ts'].map((ending) =>
  pageText(join(PROJECT_ROOT, PAGE, `inspector.${ending}`)),
) as [string, string, string];

test('the page is one HTML, one CSS and one script file of less than 60 kB together', () => {
  const bytes = Buffer.byteLength(html + css + script);
  expect(bytes).toBeGreaterThan(20_000);
  expect(bytes).toBeLessThan(60_000);
  expect(script).not.toMatch(/\bimport\b/);
});

test('the HTML has no inline script or style, and its two addresses are relative', () => {
  expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|javascript:/);
  expect([...html.matchAll(/<script([^>]*)>([^]*?)<\/script>/g)].map(([, , text]) => text)).toEqual(['']);
  const addresses = [...html.matchAll(/\s(?:src|href)="([^"#][^"]*)"/g)].map(([, address]) => address!);
  expect(addresses.filter((address) => !address.startsWith('data:')).sort()).toEqual(['inspector.css', 'inspector.js']);
});

test('no file of the page names another host', () => {
  const hosts = /(?:https?:)?\/\/[\w-]+\.[\w.-]+/g;
  const known = ['http://www.w3.org'];
  const named = [html, css, script].flatMap((text) => text.match(hosts) ?? []);
  expect(named.filter((address) => !known.includes(address))).toEqual([]);
});

test('the script reads no text as HTML and runs none as code', () => {
  const forbidden =
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|setHTML|\beval\(|new Function|srcdoc/;
  expect(forbidden.test('node.innerHTML = name')).toBe(true);
  const sources = projectFiles(PAGE, '.ts');
  expect(sources.length).toBeGreaterThan(10);
  expect(sources.filter((path) => forbidden.test(readProjectFile(path)))).toEqual([]);
  // Style attributes: the Content-Security-Policy refuses them.
  expect(sources.filter((path) => /setAttribute\('style'|[{,]\s*style: /.test(readProjectFile(path)))).toEqual([]);
});
