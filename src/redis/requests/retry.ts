import pRetry from 'p-retry';

/** Tries again and again for `leftMs`, with pauses that grow. `first`: an attempt has failed with this before. */
export function retry(first: Error | undefined, again: () => Promise<void>, leftMs: number): Promise<void> {
  let pending = first;
  return pRetry(
    () => {
      if (pending === undefined) return again();
      const error = pending;
      pending = undefined;
      throw error;
    },
    {
      retries: Infinity,
      minTimeout: 25,
      maxTimeout: 400,
      factor: 2,
      // The pause before an attempt that would come after the deadline is no reason to settle after it.
      maxRetryTime: Math.max(1, leftMs),
    },
  );
}
