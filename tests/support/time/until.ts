import { HeldUp } from './held-up.js';

/** Time that a busy machine may need for an event that takes no time on an idle one. */
export const LONG_MS = 10_000;

/** Waits for a fact, looked at again and again, and fails with its description if it does not come true. */
export async function until(
  fact: () => boolean | Promise<boolean>,
  what: string,
  limitMs: number = LONG_MS,
): Promise<void> {
  const heldUp = new HeldUp();
  try {
    const begun = performance.now();
    while (!(await fact())) {
      if (heldUp.elapsed(begun) > limitMs) throw new Error(`still not true after ${limitMs} ms: ${what}`);
      await new Promise((resume) => setImmediate(resume));
    }
  } finally {
    heldUp.stop();
  }
}
