import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { escapeGlob, globToRegExp } from '../../src/inspection/glob.js';

test.each([
  ['*', 'order:42', true],
  ['order:*', 'order:42', true],
  ['order:*', 'orders', false],
  ['*:42', 'a:b:42', true],
  ['order:?', 'order:4', true],
  ['order:?', 'order:42', false],
  ['a[bc]d', 'abd', true],
  ['a[bc]d', 'aed', false],
  ['a[^bc]d', 'aed', true],
  ['a[^bc]d', 'abd', false],
  ['a[b-d]e', 'ace', true],
  ['a[d-b]e', 'ace', true],
  ['a\\*', 'a*', true],
  ['a\\*', 'ab', false],
  ['a[\\]]', 'a]', true],
  ['a[', 'a[', true],
  ['a.c', 'abc', false],
  ['*', 'two\nlines', true],
])('the pattern %j and the name %j: %j', (pattern, name, matches) => {
  expect(globToRegExp(pattern).test(name)).toBe(matches);
});

test('an escaped name matches itself alone', () => {
  const name = fc.string({ unit: fc.constantFrom('a', '*', '?', '[', ']', '\\', '^', '-', ' ') });
  fc.assert(
    fc.property(name, name, (one, other) => {
      expect(globToRegExp(escapeGlob(one)).test(other)).toBe(one === other);
    }),
  );
});
