import { expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import config from '../jest.config.mjs';
import { PROJECT_ROOT } from './project/project-files.js';
import { admin, deleteRolls, expectNothingLeft, freshName, testRedisUrl } from './redis.js';
import { startServer } from './servers/servers.js';

test('a leftover key is found, named and deleted', async () => {
  const name = freshName('left');
  await admin().set(name, '1');
  await expect(expectNothingLeft(20)).rejects.toThrow(name);
  expect(await admin().exists(name)).toBe(0);
});

test('a leftover subscription is found and named', async () => {
  const name = freshName('left');
  const subscriber = new Redis(testRedisUrl());
  await subscriber.subscribe(`redisson_lock__channel:{${name}}`);
  await expect(expectNothingLeft(20)).rejects.toThrow(name);
  await subscriber.quit();
});

test('keys that outlive holds by design, and channels of other files, are no leftovers', async () => {
  const subscriber = new Redis(testRedisUrl());
  await subscriber.subscribe('of-another-file');
  await admin().set(`redisson_lock_token:{${freshName()}}`, '1');
  await admin().hset(`holdfast_requests:{${freshName()}}:client`, '1', '1:1');
  await expectNothingLeft(20);
  await subscriber.quit();
});

test('a roll that expires within a minute may stay after a test in which a parked client died, and no other', async () => {
  const roll = `holdfast_waiters:{${freshName()}}:lock`;
  await admin().zadd(roll, 1, 'station');
  await expect(expectNothingLeft(20)).rejects.toThrow(roll);
  await admin().zadd(roll, 1, 'station');
  await deleteRolls();
  await expect(expectNothingLeft(20)).rejects.toThrow(roll);
  await admin().zadd(roll, 1, 'station');
  await admin().pexpire(roll, 60_000);
  await deleteRolls();
  await expectNothingLeft(20);
});

test('every fresh name is new', () => {
  expect(freshName('a')).not.toBe(freshName('a'));
});

test('a test that leaves a key, a channel or a timer fails by default', async () => {
  const server = await startServer();
  const jest = join(PROJECT_ROOT, 'node_modules/jest/bin/jest.js');
  const project = { ...config.projects[0], roots: ['<rootDir>/tests/support/fixtures'], testRegex: 'leaking\\.ts$' };
  const flags = [
    '--experimental-vm-modules',
    jest,
    '--config',
    JSON.stringify(project),
    '--runInBand',
    '--json',
    '--forceExit',
  ];
  const env = { ...process.env, HOLDFAST_TEST_REDIS_URL: server.url };
  const report = await new Promise<string>((resolve) => {
    execFile(process.execPath, flags, { cwd: PROJECT_ROOT, env }, (_, stdout) => resolve(stdout));
  });
  await server.stop();
  const { testResults } = JSON.parse(report) as {
    testResults: { assertionResults: { title: string; status: string; failureMessages: string[] }[] }[];
  };
  expect(testResults[0]!.assertionResults.map(({ title, status }) => [title, status])).toEqual([
    ['leaves a key', 'failed'],
    ['leaves a key with a reason', 'passed'],
    ['leaves a key after the test with the reason', 'failed'],
    ['leaves a channel', 'failed'],
    ['leaves nothing', 'passed'],
    ['leaves a timer', 'failed'],
    ['leaves a held lock', 'failed'],
    ['fails, and leaves a key', 'failed'],
  ]);
  const results = testResults[0]!.assertionResults;
  const afterFailure = results.pop()!.failureMessages.join('\n');
  expect(afterFailure).toMatch(/the failure itself[\s\S]*After the failure: left after the test/);
  expect(afterFailure).not.toContain('Never a flake');
  const messages = results.flatMap(({ failureMessages }) => failureMessages);
  expect(messages).toHaveLength(5);
  for (const message of messages) expect(message).toMatch(/Never a flake: (left after the test|timers left)/);
});
