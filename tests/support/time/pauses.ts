/*
 * The pauses of tests, in ms. A test waits for a fact where there is one to see. A pause is for the rest: for work
 * inside a client that shows nothing outside, and for proof that something does not happen. Other pauses are in
 * project/conventions/pause-reasons.ts with their reasons.
 */

/* A pause of STARTED_MS or PARKED_MS ends after several round trips to the suite's server as well: see `pause`. */

/** A call that was just started has sent its first request. Also the time between two tries of a test's own loop. */
export const STARTED_MS = 20;

/** A call that found its lock busy has got its reply, its subscription and its look after that. */
export const PARKED_MS = 50;

/** Time after which an unwanted event would have happened: a reply, a message and the next request take less. */
export const QUIET_MS = 100;

/** Time after which an unwanted event would have happened, also with a retry or a connection in between. */
export const LONG_QUIET_MS = 300;
