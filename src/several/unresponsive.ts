import type { Member } from './members.js';
import { SLOW_SERVER_MS, UNRESPONSIVE_MS } from '../timing.js';

/** Lease-clock time, in ms, at which a server last left a request unanswered, by client. */
const unansweredAt = new WeakMap<object, number>();

export function noteUnanswered({ runtime }: Member): void {
  unansweredAt.set(runtime, runtime.clock.now());
}

/** Time, in ms, that the newest reply of a server took, by client. */
const replyMs = new WeakMap<object, number>();

/** `tookMs`: how long the reply took, if the request did not wait for anything else. */
export function noteAnswer({ runtime }: Member, tookMs?: number): void {
  unansweredAt.delete(runtime);
  if (tookMs !== undefined) replyMs.set(runtime, tookMs);
}

/** Time, in ms, within which the server replies as a rule. */
export const usualReplyMs = ({ runtime }: Member): number =>
  Math.min(Math.max(SLOW_SERVER_MS, 3 * (replyMs.get(runtime) ?? 0)), runtime.options.attemptMs);

/** Whether the server has left a request unanswered recently, and has answered none since. */
export function isUnresponsive({ runtime }: Member): boolean {
  const since = unansweredAt.get(runtime);
  return since !== undefined && runtime.clock.now() < since + UNRESPONSIVE_MS;
}
