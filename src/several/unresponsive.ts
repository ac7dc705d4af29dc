import type { Member } from './members.js';
import { SLOW_SERVER_MS, UNRESPONSIVE_MS } from '../timing.js';

/** How long a server has left a request unanswered: for longer than it usually takes, or for a whole attempt. */
type Silence = 'slow' | 'attempt over';

/** When a server last left a request unanswered (lease-clock time, in ms), and for how long, by client. */
const unanswered = new WeakMap<object, { readonly at: number; readonly for: Silence }>();

/** A server that was silent for a whole attempt stays so, whatever a shorter wait finds later. */
export function noteUnanswered(member: Member, silence: Silence): void {
  const { clock } = member.runtime;
  unanswered.set(member.runtime, { at: clock.now(), for: isDown(member) ? 'attempt over' : silence });
}

/** Time, in ms, that the newest reply of a server took, by client. */
const replyMs = new WeakMap<object, number>();

/** `tookMs`: how long the reply took, if the request did not wait for anything else. */
export function noteAnswer({ runtime }: Member, tookMs?: number): void {
  unanswered.delete(runtime);
  if (tookMs !== undefined) replyMs.set(runtime, tookMs);
}

/** Time, in ms, within which the server replies as a rule. */
export const usualReplyMs = ({ runtime }: Member): number =>
  Math.min(Math.max(SLOW_SERVER_MS, 3 * (replyMs.get(runtime) ?? 0)), runtime.options.attemptMs);

/** Whether the server has left a request unanswered recently, and has answered none since. It may only be slow. */
export function isUnresponsive({ runtime }: Member): boolean {
  const silence = unanswered.get(runtime);
  return silence !== undefined && runtime.clock.now() < silence.at + UNRESPONSIVE_MS;
}

/** The same, for a request that was unanswered for a whole attempt. */
export const isDown = (member: Member): boolean =>
  isUnresponsive(member) && unanswered.get(member.runtime)?.for === 'attempt over';
