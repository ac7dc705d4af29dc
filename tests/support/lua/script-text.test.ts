import { expect, test } from '@jest/globals';
import { scriptText } from '../../../.ci/script-text.cjs';
import { ALL_SCRIPTS } from './lock-scripts.js';
import { admin } from '../redis.js';

test('issue 20.27: a script is sent without comments, indentation and blank lines', () => {
  const source = '-- lock/x: says\n\nlocal a = 1 -- why\nif a then\n  -- more\n  return a -- b\nend\n';
  expect(scriptText(source)).toBe('local a = 1\nif a then\nreturn a\nend');
});

test.each([
  ['dashes in a string', `return '-- not a comment'`],
  ['dashes in a double-quoted string', `return "a -- 'b'"`],
  ['an escaped quote before dashes', `return 'it\\'s -- one'`],
  ['an apostrophe in a comment', `-- it's\nreturn '--'`],
  ['a number less a negative one', `return 5 - -3`],
])('issue 20.27: it answers the same with %s', async (_, source) => {
  expect(await admin().eval(scriptText(source), 0)).toEqual(await admin().eval(source, 0));
});

test('issue 20.27: a long bracket, which may span lines, is refused', () => {
  expect(() => scriptText('return [[--]]')).toThrow('long bracket');
  expect(() => scriptText('--[==[ a ]==]')).toThrow('long bracket');
});

test('issue 20.27: every script is read by Redis as it is sent', async () => {
  expect(ALL_SCRIPTS.size).toBeGreaterThan(40);
  for (const { source, sha } of ALL_SCRIPTS.values()) {
    expect(source).not.toMatch(/^\s*--|^\s*$/m);
    expect(await admin().script('LOAD', source)).toBe(sha);
  }
});
