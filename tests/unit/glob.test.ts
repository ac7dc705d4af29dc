import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { escapeGlob, globMatcher } from '../../src/inspection/glob.js';

test('an escaped name matches itself alone', () => {
  const name = fc.string({ unit: fc.constantFrom('a', '*', '?', '[', ']', '\\', '^', '-', ' ') });
  fc.assert(
    fc.property(name, name, (one, other) => {
      expect(globMatcher(escapeGlob(one))(other)).toBe(one === other);
    }),
  );
});
