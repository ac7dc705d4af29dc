/*
 * Patterns of Redis: `*`, `?`, `[abc]`, `[^a-c]`, and `\` before a character that stands for itself. Redis itself can
 * match only whole keys, and the names of some objects are parts of their keys.
 */

/** Escapes a text, so that a pattern of Redis matches it alone. */
export const escapeGlob = (text: string): string => text.replace(/[\\*?[\]]/g, '\\$&');

const ANY_RUN = Symbol('any number of bytes');

/** What one part of a pattern matches: any number of bytes, or certain bytes. */
type Part = typeof ANY_RUN | ((byte: string) => boolean);

/**
 * A function that tells whether a name matches the pattern. Like Redis, it compares bytes: `?` is one byte of UTF-8. Its
 * time is at most the length of the pattern times that of the name.
 */
export function globMatcher(pattern: string): (name: string) => boolean {
  const parts = partsOf(bytesOf(pattern));
  return (name) => matches(parts, bytesOf(name));
}

/** One character for each byte. */
const bytesOf = (text: string): string => Buffer.from(text).toString('latin1');

function matches(parts: readonly Part[], name: string): boolean {
  let [part, at] = [0, 0];
  // Only the run of the last `*` may have to be longer: those before it are as short as possible.
  let lastRun: { readonly part: number; end: number } | undefined;
  while (at < name.length) {
    const next = parts[part];
    if (next === ANY_RUN) {
      part += 1;
      if (part === parts.length) return true;
      lastRun = { part, end: at };
    } else if (next?.(name.charAt(at)) === true) {
      part += 1;
      at += 1;
    } else if (lastRun !== undefined) {
      lastRun.end += 1;
      [part, at] = [lastRun.part, lastRun.end];
    } else {
      return false;
    }
  }
  return parts.slice(part).every((rest) => rest === ANY_RUN);
}

function partsOf(pattern: string): Part[] {
  const parts: Part[] = [];
  for (let at = 0; at < pattern.length; at++) {
    const byte = pattern.charAt(at);
    if (byte === '*') {
      parts.push(ANY_RUN);
    } else if (byte === '?') {
      parts.push(() => true);
    } else if (byte === '[') {
      const { end, includes } = classAt(pattern, at);
      parts.push(includes);
      at = end;
    } else {
      if (byte === '\\' && at + 1 < pattern.length) at += 1;
      const literal = pattern.charAt(at);
      parts.push((given) => given === literal);
    }
  }
  return parts;
}

/** The class that begins with the `[` at `start`. Without a `]`, it ends with the pattern. */
function classAt(pattern: string, start: number): { end: number; includes: (byte: string) => boolean } {
  const inverted = pattern[start + 1] === '^';
  const ranges: (readonly [from: string, to: string])[] = [];
  let at = start + (inverted ? 2 : 1);
  for (; at < pattern.length && pattern[at] !== ']'; at++) {
    const isEscaped = pattern[at] === '\\' && at + 1 < pattern.length;
    if (isEscaped) at += 1;
    const one = pattern.charAt(at);
    const isRange = !isEscaped && pattern[at + 1] === '-' && at + 2 < pattern.length;
    if (isRange) at += 2;
    const other = pattern.charAt(at);
    ranges.push(one < other ? [one, other] : [other, one]);
  }
  const has = (byte: string): boolean => ranges.some(([from, to]) => from <= byte && byte <= to);
  return { end: at, includes: (byte) => has(byte) !== inverted };
}
