import type { RowKind } from '../../messages.js';

/** `850 ms`, `12.4 s`, `3 min 5 s`, `2 h 10 min`, as the command `holdfast` writes it. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  const [minutes, hours] = [Math.floor(ms / 60_000), Math.floor(ms / 3_600_000)];
  return hours > 0 ? `${hours} h ${minutes % 60} min` : `${minutes} min ${Math.floor((ms % 60_000) / 1_000)} s`;
}

/** Time that passes, in whole seconds, so that few texts change. */
export const elapsed = (ms: number): string =>
  ms < 60_000 ? `${Math.max(0, Math.floor(ms / 1_000))} s` : duration(ms);

export const count = (value: number): string => value.toLocaleString('en');

export const counted = (value: number, one: string, several = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : several}`;

export const KINDS: Readonly<Record<RowKind, string>> = {
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

/** Time of the day, in the time zone of the browser. */
export const timeOfDay = (at: number): string => new Date(at).toLocaleTimeString('en-GB', { hour12: false });
