import type { FakeClock } from '../../support/time/fake-clock.js';

/** p-retry knows no clock but the process's: while a schedule is played, that is the schedule's. */
export function withTimeOf(clock: FakeClock): () => void {
  const { setTimeout, clearTimeout, performance } = globalThis;
  const replaced = {
    setTimeout: (fn: () => void, ms: number) => clock.setTimer(ms, fn),
    clearTimeout: (timer: { cancel(): void }) => timer.cancel(),
    performance: { now: () => clock.monotonic() },
  };
  define(replaced);
  return () => define({ setTimeout, clearTimeout, performance });
}

function define(values: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(values)) {
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }
}
