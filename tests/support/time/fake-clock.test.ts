import { expect, test } from '@jest/globals';
import { FakeClock } from './fake-clock.js';

test('timers run in the order of their times, each at its own time, also timers that are set in between', async () => {
  const clock = new FakeClock();
  const start = clock.monotonic();
  const seen: string[] = [];
  const note = (what: string) => () => seen.push(`${what} ${clock.monotonic() - start}`);
  clock.setTimer(30, note('c'));
  clock.setTimer(10, () => {
    note('a')();
    clock.setTimer(5, note('b'));
    clock.setTimer(500, note('late'));
  });
  clock.setTimer(30, note('d'));
  await clock.advance(100);
  expect(seen).toEqual(['a 10', 'b 15', 'c 30', 'd 30']);
  expect(clock.monotonic() - start).toBe(100);
  expect([clock.timers, clock.nextIn]).toEqual([1, 410]);
});

test('promises that a timer resolves run before the next timer', async () => {
  const clock = new FakeClock();
  const seen: string[] = [];
  clock.setTimer(10, () => {
    void (async () => {
      await Promise.resolve();
      await new Promise(process.nextTick);
      seen.push('promise');
    })();
  });
  clock.setTimer(10, () => seen.push('next timer'));
  await clock.advance(10);
  expect(seen).toEqual(['promise', 'next timer']);
});

test('advanceSync leaves promises for later', () => {
  const clock = new FakeClock();
  const seen: string[] = [];
  clock.setTimer(10, () => void Promise.resolve().then(() => seen.push('promise')));
  clock.setTimer(10, () => seen.push('next timer'));
  clock.advanceSync(10);
  expect(seen).toEqual(['next timer']);
});

test('a cancelled timer does not run, also when another of the same time cancels it', async () => {
  const clock = new FakeClock();
  let ran = false;
  clock.setTimer(10, () => second.cancel());
  const second = clock.setTimer(10, () => (ran = true));
  const third = clock.setTimer(5, () => (ran = true));
  third.cancel();
  await clock.advance(20);
  expect([ran, clock.timers]).toEqual([false, 0]);
});

test('while the loop is blocked no timer runs; afterwards all due timers run late', async () => {
  const clock = new FakeClock();
  const start = clock.monotonic();
  const at: number[] = [];
  clock.setTimer(10, () => at.push(clock.monotonic() - start));
  clock.setTimer(20, () => at.push(clock.monotonic() - start));
  clock.block(50);
  expect(at).toEqual([]);
  expect(clock.nextIn).toBe(0);
  await clock.advance(0);
  expect(at).toEqual([50, 50]);
});

test('both clocks move together, and jumpWall moves the wall clock alone', async () => {
  const clock = new FakeClock();
  const [monotonic, wall] = [clock.monotonic(), clock.wall()];
  await clock.advance(10);
  clock.block(5);
  expect([clock.monotonic() - monotonic, clock.wall() - wall]).toEqual([15, 15]);
  clock.jumpWall(3_600_000);
  expect([clock.monotonic() - monotonic, clock.wall() - wall]).toEqual([15, 3_600_015]);
});

test('a timer is never due at once, as in Node.js, so a timer that sets itself again lets time pass', () => {
  const clock = new FakeClock();
  let runs = 0;
  const again = (): void => {
    runs += 1;
    clock.setTimer(0, again);
  };
  clock.setTimer(0.2, again);
  clock.advanceSync(10);
  expect(runs).toBe(10);
});
