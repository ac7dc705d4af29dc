/* The words that the command and the page have in common. The page runs in a browser, so this file imports types, and a leaf that runs anywhere. */
import type { ListEntry } from '../../index.js';

export { escapeOf, shortened, visible } from '../../visible.js';

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
