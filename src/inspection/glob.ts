/** Escapes a text, so that a pattern of Redis matches it alone. */
export const escapeGlob = (text: string): string => text.replace(/[\\*?[\]]/g, '\\$&');

/**
 * A regular expression for a pattern of Redis: `*`, `?`, `[abc]`, `[^a-c]`, and `\` before a character that stands for
 * itself. Redis itself can match only whole keys, and the names of some objects are parts of their keys.
 */
export function globToRegExp(pattern: string): RegExp {
  const parts = pattern.match(/\\.|\[(?:\\.|[^\]\\])*\]|[^]/gsu) ?? [];
  return new RegExp(`^${parts.map(partToRegExp).join('')}$`, 'su');
}

function partToRegExp(part: string): string {
  if (part === '*') return '.*';
  if (part === '?') return '.';
  if (part.length === 2 && part.startsWith('\\')) return literal(part.slice(1));
  if (part.length < 2 || !part.startsWith('[')) return literal(part);
  const inverted = part.startsWith('[^');
  const members = [...part.slice(inverted ? 2 : 1, -1).matchAll(/(\\.|[^])(?:-(\\.|[^]))?/gsu)];
  // An empty class matches no character; inverted, it matches every character.
  if (members.length === 0) return inverted ? '.' : '(?!)';
  const ranges = members.map(([, first = '', last]) => {
    const [from, to] = [bare(first), bare(last ?? first)].sort() as [string, string];
    return `${literal(from)}-${literal(to)}`;
  });
  return `[${inverted ? '^' : ''}${ranges.join('')}]`;
}

const bare = (char: string): string => (char.length > 1 && char.startsWith('\\') ? char.slice(1) : char);
const literal = (char: string): string => `\\u{${(char.codePointAt(0) as number).toString(16)}}`;
