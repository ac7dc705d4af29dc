// @ts-check
// A plugin of TypeDoc: what its pages lack for a screen reader. tests/browser/site.test.ts checks the built site.
import { Renderer } from 'typedoc';

/**
 * Each heading is one level below the heading that it belongs to, from level 1 on: TypeDoc chooses headings by size.
 *
 * @param {string} html
 */
function withHeadingLevels(html) {
  /** @type {number[]} */
  const open = [];
  return html.replaceAll(/<h([1-6])\b/g, (tag, digit) => {
    const level = Number(digit);
    while ((open.at(-1) ?? 0) >= level) open.pop();
    open.push(level);
    return open.length === level ? tag : `${tag} aria-level="${open.length}"`;
  });
}

/** @param {string} html */
function accessible(html) {
  return withHeadingLevels(html)
    .replace('<div class="col-content">', '<div class="col-content" role="main">')
    .replace('<div class="col-sidebar">', '<div class="col-sidebar" role="complementary" aria-label="Contents">')
    .replaceAll('<th></th>', '<td></td>');
}

/** @param {import('typedoc').Application} app */
export function load(app) {
  app.renderer.on(Renderer.EVENT_END_PAGE, (page) => {
    if (page.contents !== undefined) page.contents = accessible(page.contents);
  });
}
