import { expect, test } from '@jest/globals';
import { runFixture } from '../support/processes/fixture-process.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';

test('await using closes clients and releases holds in a realm without Symbol.asyncDispose', async () => {
  const name = freshName();
  const states = [true, 0, false, 1, 'ERR_LOCK_CLIENT_CLOSED'];
  expect(await runFixture('realm-without-symbol.mjs', [testRedisUrl(), name])).toEqual({
    esbuild: states,
    typescript: states,
  });
  await admin().del(`${name}:esbuild:permits`, `${name}:typescript:permits`);
});
