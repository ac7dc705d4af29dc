import { expect, test } from '@jest/globals';
import { UsageError } from '../../src/cli/arguments.js';
import { explain } from '../../src/cli/explain.js';
import { declarations } from '../support/project/guide.js';

test('every code is explained as plain text that fits 80 columns, in either case', () => {
  const codes = declarations('src/errors.ts')
    .get('LockErrorCode')!
    .getText()
    .match(/ERR_LOCK_\w+/g)!;
  expect(codes.length).toBeGreaterThan(10);
  for (const code of codes) {
    const text = explain(code);
    expect(text.split('\n').map((line) => line.length <= 80)).not.toContain(false);
    expect(text).toMatch(new RegExp(`^${code}\n\n\\w+Error.*\n\n- When: [^]+\n- State: [^]+\n- What to do: [^]+\\.$`));
    expect(text).not.toMatch(/\*\*|`|\]\(/);
    expect(explain(code.toLowerCase())).toBe(text);
  }
});

test('an unknown code is answered with the codes', () => {
  expect(() => explain('ERR_LOCK')).toThrow(UsageError);
  expect(() => explain('ERR_LOCK')).toThrow(/^no error has the code "ERR_LOCK"; the codes are ERR_LOCK_TIMEOUT, /);
});
