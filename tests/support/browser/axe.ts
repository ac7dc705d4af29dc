import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults, RunOptions } from 'axe-core';
import type { Page } from 'puppeteer-core';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** A violation that the markup of another project causes: the rule is off for these elements alone. */
export interface Exception {
  readonly rule: string;
  readonly selector: string;
  readonly reason: string;
}

/** What axe finds in a page as it is now, all rules included: one line for each rule and element. */
export async function axeViolations(page: Page, exceptions: readonly Exception[] = []): Promise<string[]> {
  // A script from outside of the page is not subject to the Content-Security-Policy of the page.
  await page.evaluate(source);
  const options: RunOptions = { resultTypes: ['violations'] };
  const { violations } = (await page.evaluate(`axe.run(document, ${JSON.stringify(options)})`)) as AxeResults;
  const found = violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, html, failureSummary }) => ({ rule: id, target: target.join(' '), html, failureSummary })),
  );
  const counted: string[] = [];
  for (const { rule, target, html, failureSummary } of found) {
    const selectors = exceptions.filter((each) => each.rule === rule).map(({ selector }) => selector);
    const matching = selectors.length > 0 && (await page.$eval(target, matchesOne, selectors));
    if (!matching) counted.push(`${rule}: ${html.slice(0, 200)}\n${failureSummary ?? ''}`);
  }
  return counted;
}

const matchesOne = (element: Element, selectors: string[]): boolean =>
  selectors.some((selector) => element.matches(selector));
