import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { build } from 'esbuild';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../../support/project/project-files.js';
import { admin, freshName, testRedisUrl } from '../../support/redis.js';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/* The package in a bundle whose names a minifier has shortened, with everything that it imports. */

const PROGRAM = `
import { inspect } from 'node:util';
import { Redis as Ioredis } from 'ioredis';
import { Redis as Valkey } from 'iovalkey';
import * as holdfast from 'holdfast';
const [url, name] = process.argv.slice(2);
const [client, other] = [Ioredis, Valkey].map((Redis) =>
  holdfast.createClient({ redis: new Redis(url), commandTimeout: 600 }),
);
const nameOf = (call) => call.then(() => 'none', (error) => error.name);
const lock = client.getLock(name);
const hold = await lock.acquire();
const read = client.getReadWriteLock(name + ':rw');
const errors = Object.fromEntries(Object.entries(holdfast).filter(([, value]) => value?.prototype instanceof Error));
const shown = [client, lock, hold, client.getFairLock(name), client.getFencedLock(name), read, read.readLock(),
  client.getMultiLock(name, ['a']), client.getMultiLock(lock, read.readLock()), client.getRedLock(lock),
  client.getSemaphore(name), client.getPermitExpirableSemaphore(name), client.getCountDownLatch(name),
  new holdfast.LockContext(), holdfast.lockName\`a\`];
const redis = new Ioredis(url);
await redis.script('FLUSH');
console.log(JSON.stringify({
  classes: Object.entries(errors).filter(([key, { name }]) => key !== name).length,
  caught: await nameOf(Promise.resolve().then(() => other.getLock(name).acquire({ waitTime: 10 }))),
  invalid: await nameOf(other.getLock(name).acquire({ leaseTime: 0 })),
  shown: shown.map((each) => each.constructor.name),
  printed: inspect(lock).split(' ')[0],
}));
await hold.release();
await Promise.all([client.close(), other.close()]);
process.exit();
`;

/** What CommonJS modules in an ESM bundle need. */
const REQUIRE = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-minified-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

test('errors and classes keep their names, and replies of Redis are told from failures of the connection', async () => {
  const outfile = join(folder, 'program.mjs');
  await build({
    stdin: { contents: PROGRAM, resolveDir: PROJECT_ROOT },
    alias: { holdfast: join(PROJECT_ROOT, 'dist/index.mjs') },
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    banner: { js: REQUIRE },
    outfile,
    logLevel: 'silent',
  });
  const name = freshName();
  const { stdout } = await promisify(execFile)(process.execPath, [outfile, testRedisUrl(), name], { timeout: 20_000 });
  expect(JSON.parse(stdout)).toEqual({
    classes: 0,
    caught: 'LockTimeoutError',
    invalid: 'InvalidArgumentError',
    printed: 'SingleLock',
    shown: [
      ...['LockClient', 'SingleLock', 'SingleHold', 'FairLock', 'FencedLock', 'ReadWriteLock', 'SingleLock'],
      ...['GroupMultiLock', 'MultiLock', 'RedLock', 'Semaphore', 'PermitExpirableSemaphore', 'CountDownLatch'],
      ...['LockContext', 'LockName'],
    ],
  });
  await admin().del(name);
});
