import pRetry from 'p-retry';

/** Repeats `again` for at most `leftMs`, with growing pauses. `first` is the error of an attempt that failed before. */
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
      // Without this limit, a pause that ends after the deadline would make the request settle after the deadline.
      maxRetryTime: Math.max(1, leftMs),
    },
  );
}
