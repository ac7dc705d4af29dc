import PAGE from '../../docs/errors.md?text';
import { UsageError } from './arguments.js';

/**
 * The section of the page on errors about one code, as plain text for a terminal of 80 columns.
 *
 * @throws {UsageError} The page has no such code.
 */
export function explain(code: string): string {
  const sections = PAGE.split(/^## /m).slice(1);
  const section = sections.find((each) => each.startsWith(`${code.toUpperCase()}\n`));
  if (section === undefined) {
    const codes = sections.map((each) => each.slice(0, each.indexOf('\n')));
    throw new UsageError(`no error has the code "${code}"; the codes are ${codes.join(', ')}`);
  }
  const blocks = section.trim().split('\n\n');
  return blocks
    .map((block) =>
      block
        .split(/\n(?=- )/)
        .map(asText)
        .join('\n'),
    )
    .join('\n\n');
}

/** A paragraph, or an entry of a list. Its links lead to pages that the package does not contain. */
function asText(markdown: string): string {
  const text = markdown
    .replace(/\[([^\]]+)\]\([^)]+\)/g, '$1')
    .replace(/\*\*|`/g, '')
    .replace(/\s+/g, ' ');
  const lines = text.match(/\S.{0,77}(?= |$)/g) ?? [];
  return lines.join(text.startsWith('- ') ? '\n  ' : '\n');
}
