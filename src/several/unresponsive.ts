import type { Member } from './members.js';

const UNRESPONSIVE_MS = 5_000;

/** Lease-clock time, in ms, at which a server last left a request unanswered, by client. */
const unansweredAt = new WeakMap<object, number>();

export function noteUnanswered({ runtime }: Member): void {
  unansweredAt.set(runtime, runtime.clock.now());
}

export function noteAnswer({ runtime }: Member): void {
  unansweredAt.delete(runtime);
}

/** Whether the server has left a request unanswered in the last 5 s and has answered none since. */
export function isUnresponsive({ runtime }: Member): boolean {
  const since = unansweredAt.get(runtime);
  return since !== undefined && runtime.clock.now() < since + UNRESPONSIVE_MS;
}
