import { afterEach, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import {
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
  outcome,
} from '../../support/clients/lock-clients.js';
import { Command, runCommand } from '../../support/processes/command.js';
import { admin, freshName, leavesKeys, testRedisUrl } from '../../support/redis.js';
import { limitedUser } from '../../support/servers/limited-user.js';
import { startServer } from '../../support/servers/servers.js';
import { until } from '../../support/time/until.js';

leavesKeys('keys that no client made are shown, too; the probes of the doctor end by themselves');
afterEach(closeClients);

const JVM = '8743c9c0-0795-4907-87fd-6c719a6b4586:52';
/** A text that moves the cursor of a terminal and turns around what follows, and what is shown in place of it. */
const [EVIL, VISIBLE] = ['x\x1b[2J\u202e', 'x\\u{1b}[2J\\u{202e}'];
const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
const env = { HOLDFAST_URL: testRedisUrl() };
const wide = { columns: 160, rows: 30 };

describe('ls', () => {
  test('prints one row for each name, and the same as JSON', async () => {
    const client = await openClient({ clientName: 'shop' });
    const held = await holdElsewhere(client.getLock(freshName('evil\x1b[31m\u202e')));
    await admin().hset(freshName('jvm'), JVM, '2');
    const { code, out } = await runCommand(['ls'], { env });
    expect(code).toBe(0);
    const [head, ...rows] = out.trimEnd().split('\n');
    expect(head).toMatch(/^NAME +KIND +LEASE +WAITERS +HELD BY$/);
    expect(rows).toHaveLength(2);
    expect(out).not.toMatch(/[\x1b\u202e]/);
    expect(out).toContain('evil\\u{1b}[31m\\u{202e}');
    expect(out).toMatch(new RegExp(`shop \\S+:${process.pid} ${client.id.slice(0, 8)}:\\d+`));
    expect(out).toContain(`${JVM} (2 holds)`);
    const json = await runCommand(['ls', '*:evil*', '--json'], { env });
    expect(JSON.parse(json.out)).toMatchObject({ name: held.lockName, owners: [{ process: { clientName: 'shop' } }] });
    expect((await runCommand(['ls', '--limit', '1', '--json'], { env })).out.trimEnd().split('\n')).toHaveLength(1);
    await held.release();
  });

  test('is sorted by name, and fits a terminal of 80 columns with the ends of the names and their holders', async () => {
    const names = ['b', 'a', 'c'].map((end) => freshName(`${'x'.repeat(60)}:${end}`));
    for (const name of names) await admin().hset(name, JVM, '1');
    const { out } = await runCommand(['ls'], { env, terminal: { columns: 80, rows: 30 } });
    const [, ...rows] = out
      .replace(/\x1b\[\d+m/g, '')
      .trimEnd()
      .split(/\r?\n/);
    expect(rows.map((row) => row.length <= 80)).toEqual([true, true, true]);
    expect(rows.map((row) => /^\S+…\S*:([abc]):\d+ /.exec(row)?.[1])).toEqual(['a', 'b', 'c']);
    for (const row of rows) expect(row).toContain(JVM.slice(0, 20));
  });

  test('a very long name makes no other row longer, and every command cuts it', async () => {
    const long = freshName('x'.repeat(1_000_000));
    await admin().hset(long, JVM, '1');
    for (let at = 0; at < 400; at++) await admin().hset(freshName(), JVM, '1');
    const listed = await runCommand(['ls'], { env });
    expect(listed.out.trimEnd().split('\n')).toHaveLength(402);
    expect(listed.out.length).toBeLessThan(200_000);
    expect(listed.out).toContain('x'.repeat(900));
    expect((await runCommand(['ls'], { env, terminal: wide })).out.length).toBeLessThan(200_000);
    expect((await runCommand(['top', '--count', '1'], { env })).out.length).toBeLessThan(200_000);
    const [json] = (await runCommand(['ls', '*xxxx*', '--json'], { env })).out.trimEnd().split('\n');
    expect(JSON.parse(json!)).toMatchObject({ name: long });
  });

  test('says that nothing is locked, and prints nothing as JSON', async () => {
    expect(await runCommand(['ls'], { env })).toEqual({ code: 0, out: 'nothing is locked\n', err: '' });
    expect(await runCommand(['ls', '--json'], { env })).toEqual({ code: 0, out: '', err: '' });
  });

  test('ends quietly when its reader ends', async () => {
    for (let at = 0; at < 3_000; at++) await admin().hset(freshName('x'.repeat(100)), JVM, '1');
    const command = new Command(['ls', '--json'], { env });
    await command.says('{');
    command.closeOutput();
    expect(await command.ended).toBe(0);
    expect(command.err).toBe('');
  });

  test('has colours on a terminal, unless they are turned off', async () => {
    await admin().hset(freshName(), JVM, '1');
    expect((await runCommand(['ls'], { env, terminal: wide })).out).toContain('\x1b[1mNAME');
    expect((await runCommand(['ls'], { env: { ...env, NO_COLOR: '1' }, terminal: wide })).out).not.toContain('\x1b[');
    expect((await runCommand(['ls'], { env })).out).not.toContain('\x1b[');
  });
});

test('inspect shows owners, queue and waiters, and exits with 1 for a free name', async () => {
  const client = await openClient({ clientName: 'shop' });
  const name = freshName();
  const held = await holdElsewhere(client.getFairLock(name));
  const waiting = inFlow(() => client.getFairLock(name).acquire());
  await until(async () => (await client.inspect(name)).queue.length === 1, 'the waiter is in the queue');
  const { code, out } = await runCommand(['inspect', name], { env });
  expect(code).toBe(0);
  expect(out).toContain(`kind      fair lock\nowner     ${held.owner}, 1 hold\n          shop `);
  expect(out).toMatch(/waiters {3}1\n {10}1\. \S+:\d+\n$/);
  await held.release();
  await (await waiting).release();
  const free = await runCommand(['inspect', name, '--json'], { env });
  expect([free.code, (JSON.parse(free.out) as { kind: string }).kind]).toEqual([1, 'free']);
});

test.each<[string, string[], string, string, string]>([
  [
    'inspect shows the type of a key',
    ['inspect', 'stream'],
    'EVALSHA',
    `*7\r\n${bulk(EVIL)}:-1\r\n*0\r\n*0\r\n${bulk('')}*0\r\n*3\r\n:0\r\n:0\r\n:0\r\n`,
    `type      ${VISIBLE}\n`,
  ],
  [
    'doctor shows the name of a server',
    ['doctor'],
    'INFO',
    bulk(`tcp_port:${EVIL}\r\nrun_id:0123456789\r\n`),
    `server 01234567 (port ${VISIBLE})\n`,
  ],
])('%s on one line, with escapes', async (_what, args, command, reply, line) => {
  const { proxy, url } = await openProxy();
  proxy.answer({ command, times: Infinity }, reply);
  const { out } = await runCommand([...args, '--url', url]);
  expect(out).toContain(line);
  expect(out).not.toMatch(/[\x1b\u202e]/);
});

test('watch prints a line for each change until it is interrupted', async () => {
  const [client, other] = [await openClient({ clientName: 'shop' }), await openClient({ clientName: 'till' })];
  const name = freshName();
  const command = new Command(['watch', name, '--interval', '0.05'], { env });
  await command.says('kind      free');
  const held = await holdElsewhere(client.getLock(name));
  await command.says(/\d\d:\d\d:\d\d\.\d{3} {2}acquired {5}shop /);
  const waiting = inFlow(() => other.getLock(name).acquire());
  await command.says(/waiters {6}0 -> 1/);
  await held.release();
  await command.says(/(handed over|acquired) .*till /);
  await (await waiting).release();
  await command.says(/released {5}till /);
  await admin().hset(name, JVM, '1');
  await admin().pexpire(name, 300);
  await command.says(new RegExp(`expired {6}${JVM}`));
  command.interrupt();
  expect(await command.ended).toBe(130);
  expect(command.err).toBe('');
});

describe('top', () => {
  test('draws its table again on a terminal, most waited for first, within the width', async () => {
    const [client, other] = [await openClient(), await openClient()];
    const [idle, busy] = [freshName('a-idle'), freshName('b-busy')];
    const held = [await holdElsewhere(client.getLock(idle)), await holdElsewhere(client.getLock(busy))];
    const waiting = inFlow(() => other.getLock(busy).acquire());
    await until(async () => (await client.inspect(busy, { processes: true })).waiters === 1, 'a client waits');
    const terminal = { columns: 100, rows: 20 };
    const { code, out } = await runCommand(['top', '--count', '2', '--interval', '0.2'], { env, terminal });
    expect(code).toBe(0);
    const screens = out.split('\x1b[H').slice(2);
    expect(screens).toHaveLength(2);
    const lines = screens[1]!.replace(/\x1b\[[0-9;]*[A-Z]|\r/g, '').split('\n');
    expect(lines[0]).toBe('2 in use, 1 waited for');
    expect(lines[2]).toContain('b-busy');
    expect(lines[2]).toMatch(/≥ [1-9]\d* ms|≥ \d\.\d s/);
    expect(Math.max(...lines.map((line) => Array.from(line).length))).toBeLessThanOrEqual(100);
    await Promise.all(held.map((hold) => hold.release()));
    await (await waiting).release();
  });

  test('prints tables without a terminal, and JSON', async () => {
    await admin().hset(freshName(), JVM, '1');
    const { out } = await runCommand(['top', '--count', '1'], { env });
    expect(out).not.toContain('\x1b');
    expect(JSON.parse((await runCommand(['top', '--count', '1', '--json'], { env })).out)).toMatchObject({ heldMs: 0 });
  });
});

describe('unlock', () => {
  test('asks for the name on a terminal, and frees the lock of the owner that it showed', async () => {
    const client = await openClient({ clientName: 'shop' });
    const name = freshName('two words');
    const held = await holdElsewhere(client.getLock(name));
    const wrong = new Command(['unlock', name], { env, terminal: wide });
    await wrong.says('Type the name of the lock to free it: ');
    expect(wrong.out).toContain(`owner     ${held.owner}`);
    wrong.type('yes\n');
    expect(await wrong.ended).toBe(1);
    expect(await client.getLock(name).isLocked()).toBe(true);
    const right = new Command(['unlock', name], { env, terminal: wide });
    await right.says('Type the name of the lock to free it: ');
    right.type(`${name}\n`);
    expect(await right.ended).toBe(0);
    expect(right.out).toContain('freed');
    expect(await client.getLock(name).isLocked()).toBe(false);
    await expect(held.release()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
  });

  test('ends at Ctrl-D, and the lock stays held', async () => {
    const client = await openClient();
    const held = await holdElsewhere(client.getLock(freshName()));
    const command = new Command(['unlock', held.lockName], { env, terminal: wide });
    await command.says('Type the name');
    command.type('\x04');
    expect(await command.ended).toBe(1);
    await held.release();
  });

  test('frees an owner of both halves of a read-write lock', async () => {
    const client = await openClient();
    const locks = client.getReadWriteLock(freshName());
    const write = await holdElsewhere(locks.writeLock());
    const read = await write.run(() => locks.readLock().acquire());
    const given = ['unlock', write.lockName, '--yes', '--owner', write.owner];
    expect(await runCommand(given, { env })).toMatchObject({ code: 0, out: 'freed\n' });
    expect(await admin().exists(write.lockName)).toBe(0);
    for (const hold of [read, write]) expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
  });

  test('leaves the lock to its next owner, who came while the question was open', async () => {
    const client = await openClient();
    const name = freshName();
    const held = await holdElsewhere(client.getLock(name));
    const command = new Command(['unlock', name], { env, terminal: wide });
    await command.says('Type the name');
    await held.release();
    const next = await holdElsewhere(client.getLock(name));
    command.type(`${name}\n`);
    expect(await command.ended).toBe(1);
    expect(command.out).toContain('not freed');
    await next.release();
  });

  test('says that the lock may be free or not if no reply comes', async () => {
    const { proxy, url } = await openProxy();
    const hold = await holdElsewhere((await openClient()).getLock(freshName()));
    proxy.swallow({ contains: hold.owner, times: Infinity });
    const given = ['unlock', hold.lockName, '--yes', '--owner', hold.owner, '--timeout', '400', '--url', url];
    const { code, err } = await runCommand(given);
    expect([code, err]).toEqual([3, expect.stringContaining('the lock may be free or not')]);
    await outcome(hold.release());
  });

  test('with --yes needs the owner, and without a terminal both', async () => {
    const name = freshName();
    await admin().hset(name, JVM, '1');
    const refused = await runCommand(['unlock', name], { env });
    expect(refused).toMatchObject({ code: 2, err: expect.stringContaining('--yes --owner') });
    expect((await runCommand(['unlock', name, '--yes'], { env })).code).toBe(2);
    const other = await runCommand(['unlock', name, '--yes', '--owner', JVM.replace(':52', ':7')], { env });
    expect(other).toMatchObject({ code: 1, out: 'this owner does not have the lock\n' });
    const freed = await runCommand(['unlock', name, '--yes', '--owner', JVM, '--json'], { env });
    expect([freed.code, JSON.parse(freed.out)]).toEqual([0, { name, owner: JVM, freed: true }]);
    expect(await admin().exists(name)).toBe(0);
  });
});

describe('doctor', () => {
  test('finds a server in order, and leaves nothing that stays', async () => {
    const { code, out } = await runCommand(['doctor'], { env });
    expect(code).toBe(0);
    expect(out).toMatch(/ok {7}permissions {2}getFairLock works/);
    expect(out).toMatch(/ok {7}eviction/);
    const keys = await admin().keys('holdfast:doctor:*');
    for (const key of keys) expect(await admin().pttl(key)).toBeGreaterThanOrEqual(-2);
    await until(async () => (await admin().keys('holdfast:doctor:*')).length === 0, 'the probes have ended', 5_000);
  });

  test('finds eviction and a missing permission, and says what to do', async () => {
    const server = await startServer({ config: { maxmemory: '64mb', 'maxmemory-policy': 'allkeys-lru' } });
    const found = await runCommand(['doctor', '--json', '--url', server.url], { env: {} });
    expect(found.code).toBe(1);
    const findings = found.out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, string>);
    expect(findings.find(({ check }) => check === 'eviction')).toMatchObject({
      level: 'error',
      message: expect.stringContaining('allkeys-lru'),
      advice: expect.stringContaining('noeviction'),
    });
    await server.stop();
    const user = limitedUser('holdfast', ['getLock']);
    await user.allow('hset');
    const { username, password } = user.credentials;
    const limited = { ...env, HOLDFAST_USERNAME: username, HOLDFAST_PASSWORD: password };
    const { code, out } = await runCommand(['doctor'], { env: limited });
    expect(code).toBe(1);
    expect(out).toMatch(/error {4}permissions {2}getLock fails: .*\n +allow \+hset/);
    expect(out).toContain('INFO is refused');
  });
});

describe('the connection', () => {
  test('a password on the command line is refused, and no message repeats it', async () => {
    const { code, err } = await runCommand(['ls', '--url', 'redis://:sesame@127.0.0.1:1']);
    expect(code).toBe(2);
    expect(err).toContain('HOLDFAST_PASSWORD');
    expect(err).not.toContain('sesame');
  });

  test.each([
    [['ls', '--url', 'http://127.0.0.1']],
    [['ls', '--url', 'nonsense']],
    [['ls', '--cluster', 'here']],
    [['ls', '--sentinel', '127.0.0.1:1']],
    [['ls', '--cluster', 'a:1', '--url', 'redis://a']],
    [['ls', '--db', 'x']],
    [['ls', '--timeout', '1']],
  ])('%j is a usage error', async (args) => {
    expect(await runCommand(args)).toMatchObject({ code: 2, out: '', err: expect.stringMatching(/^holdfast: .+\n$/) });
  });

  test('a Redis that is not there is told with its cause, within the timeout', async () => {
    const { code, err } = await runCommand(['ls', '--url', 'redis://127.0.0.1:1', '--timeout', '300']);
    expect([code, err.match(/ECONNREFUSED/g)]).toEqual([3, ['ECONNREFUSED']]);
  });

  test('--url goes before HOLDFAST_URL, which goes before REDIS_URL', async () => {
    const [here, away] = [testRedisUrl(), 'redis://127.0.0.1:1'];
    const codeOf = async (args: readonly string[], variables: Record<string, string>): Promise<number> =>
      (await runCommand(['ls', '--timeout', '2000', ...args], { env: variables })).code;
    expect(await codeOf([], { REDIS_URL: here })).toBe(0);
    expect(await codeOf([], { HOLDFAST_URL: here, REDIS_URL: away })).toBe(0);
    expect(await codeOf(['--url', here], { HOLDFAST_URL: away, REDIS_URL: away })).toBe(0);
  });

  test('a user that may not run scripts is told what is missing', async () => {
    const user = limitedUser('holdfast', ['list']);
    await user.allow('evalsha');
    await admin().hset('holdfast:list', JVM, '1');
    const { username, password } = user.credentials;
    const { code, err } = await runCommand(['ls'], {
      env: { ...env, HOLDFAST_USERNAME: username, HOLDFAST_PASSWORD: password },
    });
    await admin().del('holdfast:list');
    expect([code, err]).toEqual([3, expect.stringContaining('+evalsha')]);
  });

  test('a user that may not scan is told what is missing', async () => {
    const user = limitedUser('holdfast', ['getLock']);
    await user.allow();
    const { username, password } = user.credentials;
    const { code, err } = await runCommand(['ls'], {
      env: { ...env, HOLDFAST_USERNAME: username, HOLDFAST_PASSWORD: password },
    });
    expect([code, err]).toEqual([3, expect.stringContaining('+scan')]);
  });

  test('the prefix is that of the clients', async () => {
    const client = await openClient({ keyPrefix: 'app:' });
    const held = await holdElsewhere(client.getLock(freshName()));
    const { out } = await runCommand(['ls', '--prefix', 'app:', '--json'], { env });
    expect(JSON.parse(out)).toMatchObject({ name: held.lockName });
    await held.release();
  });
});

test('watch and top say that Redis is unavailable, and go on when it is back', async () => {
  const server = await startServer();
  const given = ['--url', server.url, '--timeout', '300', '--interval', '0.1'];
  const [watch, top] = [new Command(['watch', 'kept', ...given]), new Command(['top', ...given])];
  try {
    await watch.says('kind      free');
    await top.says('0 in use');
    await server.kill9();
    await watch.says('Redis is unavailable');
    await top.says('Redis is unavailable');
    await server.start();
    await server.command('HSET', 'kept', JVM, '1');
    await watch.says(new RegExp(`acquired {5}${JVM}`));
    await top.says('1 in use');
    for (const command of [watch, top]) command.interrupt();
    expect([await watch.ended, await top.ended, watch.err, top.err]).toEqual([130, 130, '', '']);
  } finally {
    for (const command of [watch, top]) command.interrupt();
    await server.stop();
  }
}, 60_000);

test('help, version and explain need no Redis', async () => {
  const { version } = JSON.parse((await import('node:fs')).readFileSync('package.json', 'utf8')) as { version: string };
  expect(await runCommand(['--version'])).toEqual({ code: 0, out: `${version}\n`, err: '' });
  for (const args of [[], ['help'], ['-h'], ['ls', '--help']]) {
    expect((await runCommand(args)).out).toMatch(/^Shows what is locked/);
  }
  expect((await runCommand(['explain', 'err_lock_lost'])).out).toMatch(/^ERR_LOCK_LOST\n\nLockLostError: /);
  expect(await runCommand(['explain', 'ERR_OTHER'])).toMatchObject({ code: 2, out: '' });
  expect((await runCommand(['explain'])).err).toBe('holdfast: explain needs a code: holdfast explain <code>\n');
});

test('100,000 locks are listed in short commands, and top shows the first of them', async () => {
  // Of its own: no other file is held up, and the counts have nothing of others.
  const server = await startServer();
  const redis = new Redis(server.url);
  for (let from = 0; from < 100_000; from += 10_000) {
    const commands = redis.pipeline();
    for (let at = from; at < from + 10_000; at++) commands.hset(`many:${at}`, JVM, '1');
    await commands.exec();
  }
  await server.resetCommandStats();
  const { code, out } = await runCommand(['ls', '--json', '--url', server.url]);
  expect(code).toBe(0);
  const rows = out.trimEnd().split('\n');
  expect(new Set(rows.map((line) => (JSON.parse(line) as { name: string }).name)).size).toBe(100_000);
  // Redis serves others between two pages of 250 keys.
  const commands = await server.commandStats();
  expect(commands.get('scan')).toBeGreaterThanOrEqual(100_000 / 250);
  expect(commands.has('keys')).toBe(false);
  const top = await runCommand(['top', '--count', '1', '--limit', '5', '--url', server.url]);
  expect(top.out).toMatch(/^100000 in use, 0 waited for, first 5 shown\n/);
  redis.disconnect();
  await server.stop();
}, 120_000);
