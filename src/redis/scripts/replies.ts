/* What the scripts of the kinds of lock answer, in the words of the code above them. */

/** What is left of something that several can have, and ms until some of it comes back by itself; -1: nobody knows. */
interface Left {
  readonly free: number;
  readonly freeIn: number;
}
/** A number: ms until a holder's lease ends, -1 without one. Anything else: taken, with a token if it is a bigint. */
export type AcquireReply = number | bigint | Left | undefined;
/** A bigint: held, with that token. */
export type HeldReply = 'held' | 'gone' | bigint;
/** `partly`: what was still held has been given back, but a part of it was lost before. */
export type ReleaseReply = 'freed' | 'partly' | 'gone';
/** A bigint: handed on, with that token. */
export type HandOffReply = 'handed' | 'published' | 'gone' | bigint;

/** ms until some of it is free, -1 if that is not known; undefined while some is left. */
export const nextFreeIn = (reply: AcquireReply): number | undefined =>
  typeof reply === 'object' && reply.free <= 0 ? reply.freeIn : undefined;
