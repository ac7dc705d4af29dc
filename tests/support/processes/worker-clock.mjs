// @ts-check
import { stamp } from '../history/history-recorder.mjs';

/*
 * The clocks of a machine as a process sees them when they are set or when the machine sleeps. `stamp()` uses the real
 * clocks.
 */

/** ms by which the wall clock has been set, in all. */
let ahead = 0;
/** ms for which the monotonic clock has stood still. */
let slept = 0;
let installed = false;

function install() {
  if (installed) return;
  installed = true;
  const wall = Date.now;
  const monotonic = performance.now.bind(performance);
  Date.now = () => wall() + ahead;
  performance.now = () => monotonic() - slept;
}

/** @param {number} ms  forward, or back if negative */
export function setWallClock(ms) {
  install();
  ahead += ms;
}

/** The signal is on its way for a moment; the stop has to begin while the clock is being held. */
const HELD_MS = 5;

/**
 * Stops the process until it is resumed. Its monotonic clock stops for that time, as on a sleeping machine. Returns how
 * far each clock has moved.
 */
export function fallAsleep() {
  install();
  const before = { wall: Date.now(), monotonic: performance.now() };
  const from = stamp();
  process.kill(process.pid, 'SIGSTOP');
  while (stamp() < from + HELD_MS);
  slept += stamp() - from;
  return { wallMs: Date.now() - before.wall, monotonicMs: performance.now() - before.monotonic };
}
