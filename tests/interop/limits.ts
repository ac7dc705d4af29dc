/**
 * A waiter is woken within 200 ms of a release. That is for an idle machine: two busy cores may take 250 ms more until
 * a JVM, a server and a Node process have all had their turn.
 */
export const WAKE_MS = 200 + 250;
