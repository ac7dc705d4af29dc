import { expect, test } from '@jest/globals';
import { mayHaveWritten } from '../../src/redis/requests/refused-request.js';

/** A script that may have written at the lines 3 to 5. */
const script = { name: 'lock/example', source: '', sha: '', notAfter: undefined, writtenAt: [[3, 5]] } as const;

test.each([
  ['WRONGTYPE Operation against a key script: e07, on @user_script:2.', false],
  ['ERR Error running script (call to f_e07): @user_script:6: WRONGTYPE Operation against a key', false],
  ['ERR ACL failure in script: No permissions to access a channel script: bad, on @user_script:3.', true],
  ['ERR ACL failure in script: No permissions to access a channel script: bad, on @user_script:5.', true],
  // It does not name the line.
  ['ERR ACL failure in script: No permissions to access a channel', true],
  // Redis refused the script as a whole.
  ["NOPERM this user has no permissions to run the 'evalsha' command", false],
])('a script that Redis refuses may have written, by the line of the error: %s', (message, expected) => {
  expect(mayHaveWritten({ name: 'lock/example', script }, new Error(message))).toBe(expected);
});
