/* The replies of the lock scripts, in the words of the code above the bindings. */

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
