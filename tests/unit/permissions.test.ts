import { expect, test } from '@jest/globals';
import { missingRule } from '../../src/redis/permissions.js';

const source = [
  '-- lock/example',
  "if redis.call('EXISTS', lock) == 1 then return 0 end",
  "if free then redis.call('HSET', lock, owner, '1') else redis.call('DEL', lock) end",
  "redis.call(publish, channel, '0')",
].join('\n');
const request = { keys: ['order:42'], channel: 'redisson_lock__channel:{order:42}', publish: 'SPUBLISH', source };

/** As Redis 6.0, 7.0, and 8.0 or Valkey 8.1 put it. */
test.each<[string, string | undefined]>([
  ["NOPERM this user has no permissions to run the 'evalsha' command or its subcommand", '+evalsha'],
  ["NOPERM this user has no permissions to run the 'evalsha' command", '+evalsha'],
  ["NOPERM User u has no permissions to run the 'evalsha' command", '+evalsha'],
  [
    "ERR Error running script (call to f_e07): @user_script:2: @user_script: 2: The user executing the script can't run this command or subcommand",
    '+exists',
  ],
  [
    "ERR The user executing the script can't run this command or subcommand script: e07, on @user_script:3.",
    '+hset +del',
  ],
  [
    "ERR The user executing the script can't run this command or subcommand script: e07, on @user_script:4.",
    '+spublish',
  ],
  [
    "ERR ACL failure in script: User u has no permissions to run the 'hget' command script: e07, on @user_script:1.",
    '+hget',
  ],
  ['NOPERM this user has no permissions to access one of the keys used as arguments', '~order:42'],
  ['NOPERM No permissions to access a key', '~order:42'],
  [
    "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: fdc, on @user_script:2.",
    '~order:42',
  ],
  ['ERR ACL failure in script: No permissions to access a key script: a3b, on @user_script:1.', '~order:42'],
  ['NOPERM this user has no permissions to access one of the channels used as arguments', '&redisson_lock__channel:*'],
  [
    "ERR The user executing the script can't publish to the channel mentioned in the command script: bad, on @user_script:4.",
    '&redisson_lock__channel:*',
  ],
  [
    'ERR ACL failure in script: No permissions to access a channel script: bad, on @user_script:4.',
    '&redisson_lock__channel:*',
  ],
  ["OOM command not allowed when used memory > 'maxmemory'.", undefined],
  ['WRONGTYPE Operation against a key holding the wrong kind of value', undefined],
  ['WRONGPASS invalid username-password pair or user is disabled.', undefined],
])('%s', (message, rule) => {
  expect(missingRule(message, request)).toBe(rule);
});

test.each([
  ['redisson_rwlock:{a}', '&redisson_rwlock:*'],
  ['redisson_sc:ord:{42}:l', '&redisson_sc:*'],
  ['redisson_countdownlatch__channel__{a}', '&redisson_countdownlatch__channel__*'],
  ['redisson_lock__channel:app:{42}', '&redisson_lock__channel:*'],
])('the pattern of %s belongs to its kind', (channel, rule) => {
  expect(missingRule('NOPERM No permissions to access a channel', { channel })).toBe(rule);
});
