import type { Member } from './members.js';
import { UNRESPONSIVE_MS } from '../timing.js';

/** Lease-clock time, in ms, at which a server last left a request unanswered, by client. */
const unansweredAt = new WeakMap<object, number>();

export function noteUnanswered({ runtime }: Member): void {
  unansweredAt.set(runtime, runtime.clock.now());
}

export function noteAnswer({ runtime }: Member): void {
  unansweredAt.delete(runtime);
}

/** Whether the server has left a request unanswered recently, and has answered none since. */
export function isUnresponsive({ runtime }: Member): boolean {
  const since = unansweredAt.get(runtime);
  return since !== undefined && runtime.clock.now() < since + UNRESPONSIVE_MS;
}
