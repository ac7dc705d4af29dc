// @ts-check
// A plugin of TypeDoc: the search finds a page of the guide by its title and its headings. By itself, TypeDoc finds a
// page by the name in the navigation, and by its text with the weight of a comment.
import { Renderer } from 'typedoc';

/** Weights of the fields of a page. TypeDoc gives a name 10, and comments and texts 1. */
const WEIGHTS = { title: 80, headings: 40 };
/** A page of the guide answers a question sooner than an entry of the reference. */
const PAGE_BOOST = 6;

/** Groups whose pages a user of the package does not look for. */
const FOR_CONTRIBUTORS = ['How it is made', 'Decisions', 'For contributors', 'The project'];

/**
 * The first heading of a page, and the others. Under a heading with the code of an error stands the name of its class.
 *
 * @param {string} text
 */
function headingsOf(text) {
  const prose = text.replace(/^```[^]*?^```$/gm, '');
  const [title = '', ...headings] = [...prose.matchAll(/^#+ (.+)(?:\n\n`(\w+Error)`)?/gm)].map(
    ([, heading = '', error = '']) => `${heading} ${error}`,
  );
  return { title, headings: headings.join('\n') };
}

/** @param {import('typedoc').Application} app */
export function load(app) {
  app.renderer.on(Renderer.EVENT_PREPARE_INDEX, ({ searchResults, searchFields, searchFieldWeights }) => {
    Object.assign(searchFieldWeights, WEIGHTS);
    searchResults.forEach((result, at) => {
      if (!result.isDocument() || FOR_CONTRIBUTORS.includes(String(result.frontmatter['group']))) return;
      searchFields[at] = headingsOf(result.content.map(({ text }) => text).join(''));
      result.relevanceBoost = PAGE_BOOST;
    });
  });
}
