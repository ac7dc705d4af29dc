import { duration } from '../../../shared/inspection-words.js';

/** Time that passes, in whole seconds, so that few texts change. */
export const elapsed = (ms: number): string =>
  ms < 60_000 ? `${Math.max(0, Math.floor(ms / 1_000))} s` : duration(ms);

export const count = (value: number): string => value.toLocaleString('en');

export const counted = (value: number, one: string, several = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : several}`;

/** Time of the day, in the time zone of the browser. */
export const timeOfDay = (at: number): string => new Date(at).toLocaleTimeString('en-GB', { hour12: false });
