import type { Member } from './members.js';

const AWAY_MS = 5_000;

/** When a server last left a request unanswered, by client: for so long nobody waits there first. */
const awaySince = new WeakMap<object, number>();

export function noteAway({ inner: { runtime } }: Member): void {
  awaySince.set(runtime, runtime.clock.now());
}

export function noteAnswer({ inner: { runtime } }: Member): void {
  awaySince.delete(runtime);
}

export function isAway({ inner: { runtime } }: Member): boolean {
  const since = awaySince.get(runtime);
  return since !== undefined && runtime.clock.now() < since + AWAY_MS;
}
