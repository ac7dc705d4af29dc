import { expect, test } from '@jest/globals';
import { Gate } from '../../src/gate.js';
import { FakeClock } from '../support/time/fake-clock.js';

const late = (): Error => new Error('late');

/** A wait of 100 ms at a gate that is closed. */
function waiting(or?: Promise<void>) {
  const clock = new FakeClock();
  const gate = new Gate(clock);
  const wait = gate.wait({ until: clock.monotonic() + 100, late, or, keepsAlive: false });
  return { clock, gate, outcome: wait.then(() => 'open', String) };
}

test('every wait at a gate ends when it opens, and no timer is left', async () => {
  const { clock, gate, outcome } = waiting();
  const other = gate.wait({ until: clock.monotonic() + 50, keepsAlive: false });
  gate.open();
  expect(await outcome).toBe('open');
  await other;
  expect(clock.timers).toBe(0);
});

test('a gate that opens with an error rejects its waits', async () => {
  const { clock, gate, outcome } = waiting();
  gate.open(new Error('closed'));
  expect(await outcome).toBe('Error: closed');
  expect(clock.timers).toBe(0);
});

test('a wait ends at its deadline, with its error or without one', async () => {
  const { clock, gate, outcome } = waiting();
  const patient = gate.wait({ until: clock.monotonic() + 100, keepsAlive: false });
  await clock.advance(99);
  expect(clock.timers).toBe(2);
  await clock.advance(1);
  expect(await outcome).toBe('Error: late');
  await patient;
});

test('a wait also ends with the awaited promise', async () => {
  const ready = waiting(Promise.resolve());
  expect(await ready.outcome).toBe('open');
  expect(ready.clock.timers).toBe(0);
  const failed = waiting(Promise.reject(new Error('refused')));
  expect(await failed.outcome).toBe('Error: refused');
});
