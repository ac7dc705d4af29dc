/**
 * Runs code of the application when the current change of state is complete: listeners of events, subscribers of
 * channels, and listeners of a signal. Such code may call any method of the client, so it must not run between two halves
 * of a change. Every change is synchronous, so it is complete when the microtask runs. Calls run in order, and before the
 * code that awaits a promise which the same change settles later.
 */
export const afterChange = (tell: () => void): void => queueMicrotask(tell);
