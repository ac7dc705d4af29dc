import { expect, test } from '@jest/globals';
import { runNemesis } from '../nemesis/nemesis.js';

test('R38: two minutes of random faults over four processes: no overlap, no late acquire, nothing left', async () => {
  const seed = process.env['HOLDFAST_SEED'] ?? '4';
  const report = await runNemesis({ minutes: 2, seed, say: (line) => console.log(line), shrinkMinutes: 0 });
  expect(report.found ?? 'no violation').toBe('no violation');
  // A nemesis that strikes nothing, or flows that get nothing, would prove nothing.
  expect(report.sections).toBeGreaterThan(1_000);
  expect(report.lossesSignalled).toBeGreaterThan(0);
  expect(Object.keys(report.faults).length).toBeGreaterThan(15);
});
