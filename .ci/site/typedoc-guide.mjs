// @ts-check
// A plugin of TypeDoc: puts the pages of the guide into the site, in the order, the groups and with the names of
// docs/README.md.
import { readFileSync } from 'node:fs';
import { basename, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Application, Converter } from 'typedoc';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Pages that the index does not list, because the guide links to them where they are needed. */
const OTHERS = {
  'For contributors': {
    Contributing: 'CONTRIBUTING.md',
    'The source': 'src/README.md',
    'The tests': 'tests/README.md',
    'The benchmark': 'bench/README.md',
    'The nemesis': 'tests/verification/nemesis/README.md',
    'Runs of the nemesis': 'tests/verification/nemesis/RUNS.md',
  },
  'The project': { Changelog: 'CHANGELOG.md', Security: 'SECURITY.md' },
};

/** @typedef {{ name: string, group: string }} Place */

/**
 * The links of an index page, in order, each to a page beside it or below it.
 * @param {string} path
 * @returns {[path: string, name: string, group: string][]}
 */
function linksOf(path) {
  const sections = readFileSync(join(ROOT, path), 'utf8').split(/^## /m);
  return sections.flatMap((section) =>
    [...section.matchAll(/\[([^\]]+)\]\(((?:[\w-]+\/)*[\w-]+\.md)\)/g)].map(
      /** @returns {[path: string, name: string, group: string]} */
      ([, name = '', target = '']) => [
        posix.join(posix.dirname(path), target),
        name.replaceAll('`', ''),
        section.split('\n')[0] ?? '',
      ],
    ),
  );
}

/** @returns {Map<string, Place>} */
export function guidePages() {
  const pages = new Map([['docs/README.md', { name: 'Guide', group: 'Begin' }]]);
  for (const [path, name, group] of linksOf('docs/README.md')) pages.set(path, { name, group });
  for (const [path, name] of linksOf('docs/decisions/README.md')) pages.set(path, { name, group: 'Decisions' });
  for (const [group, others] of Object.entries(OTHERS)) {
    for (const [name, path] of Object.entries(others)) pages.set(path, { name, group });
  }
  return pages;
}

/** @param {Application} app */
export function load(app) {
  const pages = guidePages();
  app.on(Application.EVENT_BOOTSTRAP_END, () => {
    app.options.setValue(
      'projectDocuments',
      [...pages.keys()].map((path) => join(ROOT, path)),
    );
    app.options.setValue('groupOrder', [...new Set([...pages.values()].map(({ group }) => group)), '*']);
  });
  app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_context, document) => {
    const file = document.project.files.getReflectionPath(document) ?? '';
    const page = [...pages].find(([path]) => file.replaceAll('\\', '/').endsWith(`/${path}`));
    if (page === undefined) throw new Error(`${basename(file)} is no page of the guide`);
    document.name = page[1].name;
    document.frontmatter['group'] = page[1].group;
  });
}
