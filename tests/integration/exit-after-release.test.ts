import { test } from '@jest/globals';
import { runFixture } from '../support/processes/fixture-process.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { until } from '../support/time/until.js';

test.each([
  ['one lock', 1, 'lock'],
  ['two locks', 2, 'lock'],
  ['40 locks', 40, 'lock'],
  ['three readers', 3, 'read'],
  ['three multi-locks', 3, 'multi'],
])('a process that exits after the release of %s in the background leaves none of them', async (_, count, kind) => {
  const names = Array.from({ length: count }, () => freshName());
  await runFixture('exit-after-release.mjs', [testRedisUrl(), String(count), kind, ...names]);
  const keys = kind === 'multi' ? names.flatMap((name) => [name, `${name}:b`]) : names;
  // The server may read the last bytes after the end of the process.
  await until(async () => (await admin().exists(...keys)) === 0, 'all locks are free', 2_000);
});
