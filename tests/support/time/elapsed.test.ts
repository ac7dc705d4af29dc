import { expect, test } from '@jest/globals';
import { elapsed } from './elapsed.js';
import { pause } from '../clients/lock-clients.js';
import { until } from './until.js';

/** Keeps this process from running, like other processes on the same processor. */
const holdUp = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

/** Works for so long, however long that takes. */
function work(ms: number): void {
  const before = process.cpuUsage();
  for (let [user, system] = [0, 0]; user + system < ms * 1_000;) ({ user, system } = process.cpuUsage(before));
}

test('time in which the process was held up does not count, before or after a timer notices it', async () => {
  const from = performance.now();
  await pause(20);
  holdUp(1_000);
  expect(performance.now() - from).toBeGreaterThanOrEqual(1_019);
  expect(elapsed(from)).toBeLessThan(700);
  await pause(20);
  expect(elapsed(from)).toBeLessThan(700);
});

test('time that the process itself uses counts', () => {
  const from = performance.now();
  elapsed(from); // the earlier hold-up has ended
  work(100);
  // Threads of the engine beside it may have worked for some of that at the same time.
  expect(elapsed(from)).toBeGreaterThan(40);
});

test('waiting time counts, except while the process is held up', async () => {
  await until(async () => {
    const from = performance.now();
    await pause(50);
    return elapsed(from) > 40;
  }, '50 ms of a machine that lets it run');
});

test('only hold-ups between the two moments are subtracted', async () => {
  holdUp(100);
  await pause(20); // its timer has noticed
  const from = performance.now();
  work(50);
  const to = performance.now();
  await pause(20);
  holdUp(100);
  expect(elapsed(from, to)).toBeGreaterThan(30);
});
