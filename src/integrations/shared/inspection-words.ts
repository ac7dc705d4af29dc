/* The words that the command and the page have in common. The page runs in a browser, so this file imports types only. */
import type { ListEntry } from '../../index.js';

export const KIND_NAMES: Readonly<Record<ListEntry['kind'], string>> = {
  free: 'free',
  lock: 'lock',
  fenced: 'fenced lock',
  fair: 'fair lock',
  'read-write': 'read-write lock',
  group: 'group multi-lock',
  counter: 'semaphore or latch',
  permits: 'semaphore with permits that expire',
  unknown: 'no lock: a key of another program',
};

/** `850 ms`, `12.4 s`, `3 min 5 s`, `2 h 10 min`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  // Rounded down: 59.96 s is not a minute yet.
  if (ms < 60_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  const [minutes, hours] = [Math.floor(ms / 60_000), Math.floor(ms / 3_600_000)];
  return hours > 0 ? `${hours} h ${minutes % 60} min` : `${minutes} min ${Math.floor((ms % 60_000) / 1_000)} s`;
}

/** The client id in an owner id: `<client id>:<number>`. */
export const clientIdOf = (owner: string): string => owner.slice(0, owner.lastIndexOf(':'));

/** Control characters, format characters such as those that reverse the direction of text, and halves of characters. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/u;
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** The escape of a character that would hide a part of a text or change how it is shown; `undefined` for the others. */
export const escapeOf = (char: string): string | undefined =>
  INVISIBLE.test(char) ? (SHORT[char] ?? `\\u{${(char.codePointAt(0) as number).toString(16)}}`) : undefined;

/**
 * A text that comes from Redis, on one line: a name must not move the cursor of a terminal, change colours or hide a part
 * of itself.
 */
export const visible = (text: string): string => Array.from(text, (char) => escapeOf(char) ?? char).join('');
