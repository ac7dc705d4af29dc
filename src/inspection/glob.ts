/*
 * Patterns of Redis: `*`, `?`, `[abc]`, `[^a-c]`, and `\` before a character that stands for itself. Redis itself can
 * match only whole keys, and the names of some objects are parts of their keys.
 */

/** Escapes a text, so that a pattern of Redis matches it alone. */
export const escapeGlob = (text: string): string => text.replace(/[\\*?[\]]/g, '\\$&');

/** The largest number of bytes of a pattern. Redis, too, compares it from many places of a name. */
export const LONGEST_PATTERN = 1_000;

const ANY_RUN = Symbol('any number of bytes');

/** What one part of a pattern matches: any number of bytes, or certain bytes. */
type Part = typeof ANY_RUN | ((byte: string) => boolean);

/**
 * A function that tells whether a name matches the pattern. Like Redis, it compares bytes: `?` is one byte of UTF-8.
 *
 * It reads a name once and never goes back. Bit n of a set of bits says that what it has read can end after n of the
 * bytes that the pattern asks for. So its time is at most the length of the name times the number of 32-bit words in a set.
 */
export function globMatcher(pattern: string): (name: string) => boolean {
  const parts = partsOf(Buffer.from(pattern).toString('latin1'));
  const words = (parts.filter((part) => part !== ANY_RUN).length >>> 5) + 1;
  /** The bits that stay set with any byte. */
  const stays = new Int32Array(words);
  /** For each byte, the bits that it moves on by one. */
  const moves = new Int32Array(256 * words);
  let bit = 0;
  for (const part of parts) {
    const [word, mask] = [bit >>> 5, 1 << (bit & 31)];
    if (part === ANY_RUN) {
      stays[word] = (stays[word] as number) | mask;
      continue;
    }
    for (let byte = 0; byte < 256; byte++) {
      const at = byte * words + word;
      if (part(String.fromCharCode(byte))) moves[at] = (moves[at] as number) | mask;
    }
    bit += 1;
  }
  const [last, whole] = [words - 1, 1 << (bit & 31)];
  const endsWithRun = ((stays[last] as number) & whole) !== 0;
  return (name) => {
    const reached = new Int32Array(words);
    reached[0] = 1;
    const hasMatched = (): boolean => ((reached[last] as number) & whole) !== 0;
    for (const byte of Buffer.from(name)) {
      if (endsWithRun && hasMatched()) return true;
      let [moved, left] = [0, 0];
      for (let word = 0; word < words; word++) {
        const [before, carry] = [reached[word] as number, moved >>> 31];
        moved = before & (moves[byte * words + word] as number);
        const after = (before & (stays[word] as number)) | (moved << 1) | carry;
        reached[word] = after;
        left |= after;
      }
      if (left === 0) return false;
    }
    return hasMatched();
  };
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

/** A byte as Redis compares it in a range on x86: there, bytes above 127 come before all others. */
const signed = (byte: string): number => (byte.charCodeAt(0) << 24) >> 24;

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
    ranges.push([one, other]);
  }
  const has = (given: string): boolean => {
    const byte = signed(given);
    return ranges.some(([one, other]) => {
      const [from, to] = [signed(one), signed(other)];
      return Math.min(from, to) <= byte && byte <= Math.max(from, to);
    });
  };
  return { end: at, includes: (byte) => has(byte) !== inverted };
}
