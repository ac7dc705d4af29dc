/* The replies of the scripts, in the words of the code above the bindings, and their decoders. */
import { replyInt } from './script.js';

/** The free permits of a semaphore after an acquire. */
interface Left {
  readonly free: number;
  /** Time, in ms, until an expiring lease frees permits; -1: unknown. */
  readonly freeIn: number;
}
/**
 * A number means busy. From 0 on, it is the time, in ms, until a holder's lease ends. A negative number means that the
 * time is unknown. Anything else is a grant, and a bigint is its fencing token.
 */
export type AcquireReply = number | bigint | Left | undefined;
/** A bigint means held, and is the fencing token. */
export type HeldReply = 'held' | 'gone' | bigint;
/** `partly`: a part of the hold was lost before, and the rest is released. */
export type ReleaseReply = 'freed' | 'partly' | 'gone';
/** A bigint means handed, and is the fencing token of the new owner. */
export type HandOffReply = 'handed' | 'published' | 'gone' | bigint;

/** Time, in ms, until permits become free; -1 if unknown; `undefined` while permits are free. */
export const nextFreeIn = (reply: AcquireReply): number | undefined =>
  typeof reply === 'object' && reply.free <= 0 ? reply.freeIn : undefined;

export const replyAcquire = (raw: unknown): AcquireReply => (raw === null ? undefined : replyInt(raw));
export const isGrant = (reply: AcquireReply): boolean => typeof reply !== 'number';
export const replyHeld = (raw: unknown): HeldReply => (replyInt(raw) === 1 ? 'held' : 'gone');
export const replyRelease = (raw: unknown): ReleaseReply => (replyInt(raw) === 1 ? 'freed' : 'gone');
/** Whether the script did what was asked for. */
export const replyDone = (raw: unknown): boolean => replyInt(raw) === 1;

/** Decodes the reply of a script that hands a lock to the next owner or frees it. */
export function replyHandOff(raw: unknown): 'handed' | 'published' | 'gone' {
  const n = replyInt(raw);
  return n === 1 ? 'handed' : n === 2 ? 'published' : 'gone';
}
