import { expect, test } from '@jest/globals';
import { LeaseClock, systemClock, type LeaseClockMs, type MonotonicMs } from '../../../src/clock.js';
import { projectFiles, readProjectFile } from '../../support/project/project-files.js';

/** The lines of the files in `src` that match, with the file and the number of the line. */
function linesOfSource(pattern: RegExp, isExempt: (path: string) => boolean = () => false): string[] {
  return projectFiles('src', '.ts')
    .filter((path) => !isExempt(path))
    .flatMap((path) =>
      readProjectFile(path)
        .split('\n')
        .flatMap((line, at) => (pattern.test(line) ? [`${path}:${at + 1}: ${line.trim()}`] : [])),
    );
}

test('only the clock adds its jumps to a time', () => {
  const sums = /(?:\bjumped|Jump)\b *[-+] |[-+] [\w.#]*(?:\bjumped|Jump)\b/;
  expect(['sentAt + jumped', 'now - this.clock.jumped)', 'jumped + 1'].every((text) => sums.test(text))).toBe(true);
  expect(linesOfSource(sums, (path) => path === 'src/clock.ts')).toEqual([]);
});

test('moments of the two clocks do not fit each other', () => {
  const monotonic: MonotonicMs = 1;
  // @ts-expect-error a moment of the monotonic clock is none of the lease clock
  const lease: LeaseClockMs = monotonic;
  // @ts-expect-error a moment of the lease clock is none of the monotonic clock
  const back: MonotonicMs = new LeaseClock(systemClock((fn) => fn())).now();
  expect([lease, back > 0]).toEqual([1, true]);
});

test('the code above the bindings reads the words of a reply and not its type', () => {
  const types = /\btypeof (?:\w+[.?]*)*repl(?:y|ies)\b/;
  expect(types.test("typeof request.reply === 'number'")).toBe(true);
  expect(linesOfSource(types, (path) => path.startsWith('src/redis/scripts/'))).toEqual([]);
});
