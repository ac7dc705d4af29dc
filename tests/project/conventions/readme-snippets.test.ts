import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { build } from 'esbuild';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import ts from 'typescript';
import { createClient, type Lock, type LockClient } from '../../../src/index.js';
import { PROJECT_ROOT, projectFiles, readProjectFile } from '../../support/project/project-files.js';
import {
  codeIn,
  promisedOutput,
  readme,
  section,
  snippets,
  typeErrors,
  type Snippet,
} from '../../support/project/readme.js';
import { admin, freshName, testRedisUrl } from '../../support/redis.js';
import { until } from '../../support/time/until.js';

const exec = promisify(execFile);
const ESM = join(PROJECT_ROOT, 'dist/index.mjs');
const CJS = join(PROJECT_ROOT, 'dist/index.cjs');

/** What a snippet that makes no client of its own takes for granted. */
const BEFORE = `import { createClient } from 'holdfast';
const client = createClient({ url: 'redis://127.0.0.1:6379' });
const lock = client.getLock('order:42');
const fetchReport = async (options: { signal: AbortSignal }) => (options.signal.aborted ? 'stopped' : 'done');
`;
const AFTER = `await client.close();\n`;

/** It stands at its own lines, so that what the compiler says leads to the README. */
function program({ code, line }: Snippet): string {
  if (/\bcreateClient\(/.test(code)) return '\n'.repeat(line - 1) + code;
  return BEFORE + '\n'.repeat(line - BEFORE.split('\n').length) + code + AFTER;
}

const typescript = snippets('ts');
const javascript = snippets('js');

// In node_modules, where what is written finds the packages that it imports, and no tool looks at it.
let folder: string;
beforeAll(() => {
  const cache = join(PROJECT_ROOT, 'node_modules/.cache/holdfast');
  mkdirSync(cache, { recursive: true });
  folder = mkdtempSync(join(cache, 'readme-'));
});
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(async () => {
  await admin().del('seats'); // a semaphore stays when nobody uses it any more
});

/** One section of everything that there is, and of what several can have also with somebody who waits. */
async function eachOfTheFamily(client: LockClient, other: LockClient): Promise<void> {
  const locks: Lock[] = [
    client.getNonReentrantLock(freshName()),
    client.getFencedLock(freshName(), { tokens: 'clock' }),
    client.getSpinLock(freshName()),
    client.getReadWriteLock(freshName()).writeLock(),
    client.getReadWriteLock(freshName()).readLock(),
  ];
  for (const lock of locks) await lock.withLock(() => undefined);
  const rw = freshName();
  const read = await client.getReadWriteLock(rw).readLock().acquire();
  const write = other.getReadWriteLock(rw).writeLock().acquire();
  await read.release();
  await (await write).release();
  const name = freshName();
  const semaphore = client.getSemaphore(name);
  await semaphore.trySetPermits(0, 60_000);
  const taken = other.getSemaphore(name).acquire(2);
  await semaphore.addPermits(1);
  await semaphore.release();
  await taken;
  expect(await semaphore.drainPermits()).toBe(0);
  const expirable = client.getPermitExpirableSemaphore(freshName());
  await expirable.trySetPermits(1);
  await expirable.setPermits(2);
  const permit = await expirable.acquirePermit({ leaseTime: 20_000, permits: 2 });
  await permit.updateLeaseTime(30_000);
  expect(await expirable.getLeaseTime(permit.id)).toBeGreaterThan(25_000);
  const next = other.getPermitExpirableSemaphore(expirable.name).acquirePermit();
  await client.inspect(expirable.name);
  await permit.release();
  await (await next).release();
  const latch = client.getCountDownLatch(freshName());
  await latch.trySetCount(2);
  const opened = other.getCountDownLatch(latch.name).await();
  await latch.countDown();
  expect(await latch.delete()).toBe(true);
  await opened;
  await admin().del(name, expirable.name);
}

function written(name: string, code: string): string {
  const path = join(folder, name);
  writeFileSync(path, code.replace('redis://127.0.0.1:6379', testRedisUrl()));
  return path;
}

async function printed(path: string): Promise<string[]> {
  const { stdout, stderr } = await exec(process.execPath, [path], { timeout: 20_000 });
  expect(stderr).toBe('');
  return stdout.split('\n').filter((line) => line !== '');
}

const asModule = (snippet: Snippet): string =>
  ts.transpileModule(program(snippet), {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true },
  }).outputText;

describe('snippets', () => {
  test('all are TypeScript, JavaScript, shell or text', () => {
    expect(typescript.length).toBeGreaterThan(5);
    expect(javascript.length).toBeGreaterThan(0);
    const known = [...typescript, ...javascript, ...snippets('sh', 'text')].length;
    expect((readme.match(/^```/gm) ?? []).length).toBe(2 * known);
  });

  test('type-check under the settings of this project', () => {
    expect(typeErrors(new Map(typescript.map((each) => [`readme-${each.line}.ts`, program(each)])))).toEqual([]);
  });

  test.each(typescript.map((each) => [each.line, each] as const))(
    'the one in line %i runs and prints what its comments say',
    async (line, snippet) => {
      const lines = await printed(
        written(`${line}.mjs`, asModule(snippet).replaceAll("'holdfast'", `'${pathToFileURL(ESM).href}'`)),
      );
      expect(promisedOutput(snippet.code)).not.toEqual([]);
      expect([...new Set(lines)].sort()).toEqual([...new Set(promisedOutput(snippet.code))].sort());
    },
  );

  test.each(javascript.map((each) => [each.line, each] as const))(
    'the CommonJS one in line %i runs and prints what its comments say',
    async (line, { code }) => {
      const path = written(`${line}.cjs`, code.replace("'holdfast'", JSON.stringify(CJS)));
      expect(await printed(path)).toEqual(promisedOutput(code));
    },
  );
});

test('with the banner a bundle in ESM format runs, and without it not', async () => {
  const [snippet] = typescript;
  const entry = written('bundled.mjs', asModule(snippet!));
  const banner = /--banner:js="([^"]+)"/.exec(readme)![1]!;
  const bundled = async (name: string, js: string): Promise<string> => {
    const outfile = join(folder, name);
    const alias = { holdfast: ESM };
    await build({
      entryPoints: [entry],
      alias,
      bundle: true,
      platform: 'node',
      format: 'esm',
      outfile,
      banner: { js },
    });
    return outfile;
  };
  expect(await printed(await bundled('with.mjs', banner))).toEqual(promisedOutput(snippet!.code));
  await expect(printed(await bundled('without.mjs', ''))).rejects.toThrow('Dynamic require');
});

describe('the permissions', () => {
  const setUser = snippets('text')
    .map(({ code }) => code.trim())
    .find((code) => code.startsWith('ACL SETUSER'))!;
  const allowed = [...setUser.matchAll(/ \+(\S+)/g)].map(([, command]) => command!.split('|')[0]!);

  test('name every command that scripts, reads and connections use, and no other', () => {
    const scripts = projectFiles('lua', '.lua').flatMap((path) =>
      [...readProjectFile(path).matchAll(/redis\.p?call\((?:'(\w+)'|publish)/g)].map(
        ([, command]) => command ?? 'publish',
      ),
    );
    const reads = projectFiles('src/redis/scripts', '.ts').flatMap((path) => [
      ...readProjectFile(path).matchAll(/defineRead<[^(]*>\(\s*'(\w+)'/g),
    ]);
    const connections = ['evalsha', 'eval', 'time', 'subscribe', 'unsubscribe', 'ping', 'select'];
    const used = [...scripts, ...reads.map(([, command]) => command!), ...connections];
    expect([...allowed].sort()).toEqual([...new Set(used.map((command) => command.toLowerCase()))].sort());
    expect(codeIn(section('What Redis must allow'))).toContain(`+select`);
  });

  /** A user of Redis with the rules of the README, but for some. */
  async function allow(...without: string[]): Promise<{ url: string; forget(): Promise<unknown> }> {
    const user = freshName('user').replaceAll(':', '-');
    const version = /redis_version:(\d+\.\d+)/.exec(await admin().info('server'))![1]!;
    const rules = setUser.replace('SETUSER locks', `SETUSER ${user}`).split(' ').slice(1);
    const known = rules.filter((rule) => !rule.startsWith('&') || version !== '6.0');
    await admin().call('ACL', ...known.filter((rule) => !without.includes(rule)));
    const address = new URL(testRedisUrl());
    address.username = user;
    address.password = 'secret';
    return { url: address.href, forget: () => admin().call('ACL', 'DELUSER', user) };
  }

  test.each(['evalsha', 'hset', 'subscribe'])('are what a client without %s is sent here for', async (command) => {
    const { url, forget } = await allow(`+${command}`);
    const name = freshName();
    await using client = createClient({ url });
    await using elsewhere = createClient({ url: testRedisUrl() });
    const held = command === 'subscribe' ? await elsewhere.getLock(name).acquire() : undefined;
    await expect(client.getLock(name).lock()).rejects.toMatchObject({
      code: 'ERR_LOCK_REFUSED',
      message: expect.stringContaining('What Redis must allow'),
    });
    await held?.release();
    await forget();
  });

  test('are enough', async () => {
    const { url, forget } = await allow();
    const clients = [0, 1].map(() => createClient({ url, lockWatchdogTimeout: 1_200 }));
    const [client, other] = clients as [(typeof clients)[0], (typeof clients)[0]];
    const complaints: unknown[] = [];
    let renewals = 0;
    client.events.on('renewed', () => (renewals += 1));
    for (const { events } of clients) {
      for (const type of [
        'connectionError',
        'clockUnavailable',
        'renewFailed',
        'releaseFailed',
        'leaseLost',
      ] as const) {
        events.on(type, (event) => complaints.push(type, event));
      }
    }
    try {
      const name = freshName();
      const lock = client.getLock(name);
      await lock.withLock(async (hold) => {
        await lock.withLock(() => undefined);
        await hold.extend(1_000);
        await Promise.all([
          lock.getHoldCount(),
          lock.isHeldByCurrentContext(),
          lock.isLocked(),
          lock.remainTimeToLive(),
        ]);
        await client.inspect(name);
      });
      // Waiters of both clients, more in one than may stay there in a row.
      const sections = Array.from({ length: 24 }, (_, i) => (i === 20 ? other : client).getLock(name));
      await Promise.all(sections.map((each) => each.withLock(() => new Promise((done) => setTimeout(done, 2)))));
      await lock.withLock(() => until(() => renewals > 1, 'the watchdog has renewed'));
      expect(complaints).toEqual([]);
      await lock.withLock(() => undefined);
      await eachOfTheFamily(client, other);
      expect(complaints).toEqual([]);
      const forced = await lock.acquire();
      expect(await other.getLock(name).forceUnlock()).toBe(true);
      await expect(forced.release()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
    } finally {
      await Promise.all(clients.map((each) => each.close()));
      await forget();
    }
  });
});
