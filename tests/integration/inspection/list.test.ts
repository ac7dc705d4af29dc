import { afterEach, describe, expect, test } from '@jest/globals';
import { hostname } from 'node:os';
import type { LockClient } from '../../../src/client/create-client.js';
import type { ListEntry } from '../../../src/inspection/describe.js';
import type { ListOptions } from '../../../src/inspection/list.js';
import { closeClients, holdElsewhere, inFlow, openClient, openProxy } from '../../support/clients/lock-clients.js';
import { admin, freshName, leavesKeys, testRedisUrl } from '../../support/redis.js';
import { limitedUser } from '../../support/servers/limited-user.js';
import { until } from '../../support/time/until.js';

leavesKeys('keys that no client made are listed, too');

afterEach(closeClients);

const JVM = '8743c9c0-0795-4907-87fd-6c719a6b4586:52';

async function listed(client: LockClient, options?: ListOptions): Promise<Map<string, ListEntry>> {
  const entries = new Map<string, ListEntry>();
  for await (const entry of client.list(options)) {
    expect([...entries.keys()]).not.toContain(entry.name);
    entries.set(entry.name, entry);
  }
  return entries;
}

test('a client does not count itself after its last waiting call', async () => {
  const client = await openClient();
  const hold = await holdElsewhere(client.getLock(freshName()));
  const name = hold.lockName;
  const other = await openClient();
  await inFlow(() => other.getLock(name).tryLock(100));
  // The subscription lingers for 0.5 s, and is ended together with others 0.1 s later.
  const isSubscribed = async (): Promise<boolean> => ((await admin().pubsub('CHANNELS', `*${name}*`)) as []).length > 0;
  const counted = new Set<number | undefined>();
  while (await isSubscribed()) counted.add((await listed(other)).get(name)?.waiters);
  expect([...counted]).toEqual([0]);
  await hold.release();
});

test('an empty Redis has an empty list', async () => {
  expect(await listed(await openClient())).toEqual(new Map());
});

test('each kind is listed with its owners, processes, hold counts and leases', async () => {
  const [client, other] = [await openClient({ clientName: 'shop' }), await openClient()];
  const names = Object.fromEntries(
    ['plain', 'fenced', 'read', 'group', 'semaphore', 'permits', 'latch'].map((kind) => [kind, freshName(kind)]),
  ) as Record<string, string>;
  const plain = client.getLock(names.plain!);
  const holds = await inFlow(() => plain.withLock(async () => [await plain.acquire({ leaseTime: 20_000 })]));
  holds.push(await holdElsewhere(client.getFencedLock(names.fenced!)));
  const readLock = client.getReadWriteLock(names.read!).readLock();
  holds.push(await holdElsewhere(readLock), await holdElsewhere(other.getReadWriteLock(names.read!).readLock()));
  holds.push(await holdElsewhere(client.getMultiLock(names.group!, ['a', 'b'])));
  await client.getSemaphore(names.semaphore!, { permits: 5 }).acquire(2);
  await client.getPermitExpirableSemaphore(names.permits!, { permits: 3 }).acquire(30_000);
  await client.getCountDownLatch(names.latch!).trySetCount(4);

  const entries = await listed(other);
  expect([...entries.keys()].sort()).toEqual(Object.values(names).sort());
  const mine = {
    isThisClient: false,
    process: { clientName: 'shop', host: hostname(), pid: process.pid, address: expect.stringMatching(/:\d+$/) },
  };
  const owned = (entry: ListEntry | undefined) => entry?.owners;
  expect(entries.get(names.plain!)).toMatchObject({ kind: 'lock', waiters: 0, queue: [], type: 'hash' });
  expect(owned(entries.get(names.plain!))).toEqual([
    { owner: holds[0]!.owner, holdCount: 1, mode: 'exclusive', ...mine },
  ]);
  expect(entries.get(names.plain!)!.remaining).toBeGreaterThan(15_000);
  expect(entries.get(names.fenced!)).toMatchObject({ kind: 'fenced', owners: [mine] });
  expect(entries.get(names.read!)!.owners).toHaveLength(2);
  expect(entries.get(names.read!)!.owners).toEqual(
    expect.arrayContaining([expect.objectContaining({ ...mine, mode: 'read' })]),
  );
  expect(entries.get(names.group!)).toMatchObject({ kind: 'group', owners: [mine] });
  expect(entries.get(names.semaphore!)).toMatchObject({ kind: 'counter', value: '3' });
  expect(entries.get(names.permits!)).toMatchObject({ kind: 'permits', value: '2' });
  expect(entries.get(names.permits!)!.permits).toHaveLength(1);
  expect(entries.get(names.latch!)).toMatchObject({ kind: 'counter', value: '4' });
  expect(await client.inspect(names.plain!, { processes: true })).toMatchObject({
    owners: [{ ...mine, isThisClient: true }],
  });
  await Promise.all(holds.map((hold) => hold.release()));
});

test('an owner of a JVM is listed by its id and thread, without a process', async () => {
  const name = freshName();
  await admin().hset(name, JVM, '2');
  await admin().pexpire(name, 20_000);
  const [entry] = (await listed(await openClient())).values();
  expect(entry).toMatchObject({ name, kind: 'lock', owners: [{ owner: JVM, holdCount: 2, process: undefined }] });
});

test('the waiters of other clients are counted: each client once, and each place in the queue of a fair lock', async () => {
  const [holder, ...others] = [await openClient(), await openClient(), await openClient()];
  const [plain, fair, semaphore] = [freshName('plain'), freshName('fair'), freshName('semaphore')];
  const held = [await holdElsewhere(holder.getLock(plain)), await holdElsewhere(holder.getFairLock(fair))];
  await holder.getSemaphore(semaphore, { permits: 1 }).acquire();
  const waiting = others.flatMap((client) => [
    inFlow(() => client.getLock(plain).acquire()),
    inFlow(() => client.getLock(plain).acquire()),
    inFlow(() => client.getFairLock(fair).acquire()),
    inFlow(() => client.getFairLock(fair).acquire()),
  ]);
  const permits = inFlow(() => others[0].getSemaphore(semaphore).acquire());
  // Without it, only the call that waits says that the number is a semaphore.
  await admin().del(...(await admin().keys(`holdfast_requests:*${semaphore}*`)));
  await until(async () => {
    const entries = await listed(holder);
    return (
      entries.get(plain)?.waiters === 2 && entries.get(fair)?.waiters === 4 && entries.get(semaphore)?.waiters === 1
    );
  }, 'the waiters are counted');
  await Promise.all(held.map((hold) => hold.release()));
  for (const got of waiting) void got.then((hold) => hold.release());
  await Promise.all(waiting);
  await holder.getSemaphore(semaphore).release();
  await permits;
});

test('a client does not count itself after its last waiting call, although it keeps its subscription for a moment', async () => {
  const [holder, client] = [await openClient(), await openClient()];
  const name = freshName();
  const hold = await holdElsewhere(holder.getLock(name));
  const waiting = inFlow(() => client.getLock(name).acquire({ waitTime: 5_000 }));
  await until(async () => (await listed(client)).get(name)?.waiters === 1, 'the call waits');
  await hold.release();
  const next = await waiting;
  expect((await listed(client)).get(name)?.waiters).toBe(0);
  await next.release();
});

test('keys of the user are not listed, and are not read whole', async () => {
  const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`field:${at}`, 'x']));
  await admin().hset(freshName('own'), { name: 'alice', mode: 'dark', 'a:b:lock_count': '1' });
  await admin().hset(freshName('large'), many);
  await admin().set(freshName('number'), 42);
  const timeouts = freshName('zset');
  await admin().zadd(`{${timeouts}}:timeout`, 1, 'alice');
  await admin().set(timeouts, 'text');
  await admin().sadd(freshName('set'), 'a');
  expect(await listed(await openClient())).toEqual(new Map());
  const keys = await admin().keys('*large*');
  expect((await (await openClient()).inspect(keys[0]!)).kind).toBe('unknown');
});

test('names with braces, spaces, line breaks and other scripts are listed as they are', async () => {
  const client = await openClient();
  const names = ['a{b}c', 'two words', 'line\nbreak', '名前', '*?[x]\\'].map((label) => freshName(label));
  const holds = await Promise.all(names.map((name) => holdElsewhere(client.getLock(name))));
  expect([...(await listed(client)).keys()].sort()).toEqual([...names].sort());
  await Promise.all(holds.map((hold) => hold.release()));
});

describe('match, limit and signal', () => {
  test('match is a pattern for names without the key prefix, also for semaphores', async () => {
    const client = await openClient({ keyPrefix: 'app[1]:' });
    const other = await openClient();
    const [one, two] = [freshName('one'), freshName('two')];
    const holds = [await holdElsewhere(client.getLock(one)), await holdElsewhere(client.getLock(two))];
    holds.push(await holdElsewhere(other.getLock(one)));
    await client.getSemaphore(`${two}:s`, { permits: 5 }).acquire(2);
    expect([...(await listed(client, { match: '*:two:*' })).keys()].sort()).toEqual([two, `${two}:s`]);
    expect([...(await listed(client)).keys()].sort()).toEqual([one, two, `${two}:s`]);
    await Promise.all(holds.map((hold) => hold.release()));
  });

  test('limit ends the list, and no further page is read', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    for (let at = 0; at < 600; at++) await admin().hset(freshName(), JVM, '1');
    expect((await listed(client, { limit: 3 })).size).toBe(3);
    expect(proxy.log.filter(({ name }) => name === 'SCAN')).toHaveLength(1);
    expect((await listed(client)).size).toBe(600);
  });

  test('an aborted signal ends the list with LockAbortedError', async () => {
    const client = await openClient();
    for (let at = 0; at < 300; at++) await admin().hset(freshName(), JVM, '1');
    const abort = new AbortController();
    const entries = client.list({ signal: abort.signal });
    await entries.next();
    abort.abort(new Error('enough'));
    const rest = async () => {
      for await (const _ of entries);
    };
    await expect(rest()).rejects.toMatchObject({ code: 'ERR_LOCK_ABORTED', cause: { message: 'enough' } });
    await expect(client.list({ signal: abort.signal }).next()).rejects.toMatchObject({ code: 'ERR_LOCK_ABORTED' });
  });

  test.each([
    [{ match: '' }, 'match'],
    [{ match: 7 }, 'match'],
    [{ limit: 0 }, 'limit'],
    [{ limit: 1.5 }, 'limit'],
    [{ signal: {} }, 'signal'],
    [{ pattern: '*' }, 'pattern'],
    [null, 'options'],
  ])('%j is refused before any command', async (options, argument) => {
    const client = await openClient();
    expect(() => client.list(options as ListOptions)).toThrow(argument);
  });

  test('a pattern of more than 1,000 bytes is refused before any command', async () => {
    const client = await openClient();
    for (const match of ['a'.repeat(1_001), 'é'.repeat(501)]) {
      expect(() => client.list({ match })).toThrow('match must be a pattern of Redis of at most 1000 bytes');
    }
    expect(await client.list({ match: 'é'.repeat(500) }).next()).toMatchObject({ done: true });
  });
});

test('a closed client lists nothing', async () => {
  const client = await openClient();
  await client.close();
  await expect(client.list().next()).rejects.toMatchObject({ code: 'ERR_LOCK_CLIENT_CLOSED' });
  await expect(client.inspect('x', { processes: true })).rejects.toMatchObject({ code: 'ERR_LOCK_CLIENT_CLOSED' });
});

describe('a user of Redis with few permissions', () => {
  const mark = freshName('').split(':')[0]!;
  const user = limitedUser(mark, ['list', 'getLock']);
  const url = (): string => Object.assign(new URL(testRedisUrl()), user.credentials).href;

  test('sees the names that it may read, and processes', async () => {
    await user.allow();
    const client = await openClient();
    const held = await holdElsewhere(client.getLock(freshName()));
    await admin().hset(`other-${mark}`, JVM, '1');
    const entries = await listed(await openClient({ url: url() }));
    expect([...entries.keys()]).toEqual([held.lockName]);
    expect(entries.get(held.lockName)).toMatchObject({ waiters: 0, owners: [{ process: { pid: process.pid } }] });
    await held.release();
  });

  test.each([
    ['client', { waiters: 0, owners: [{ process: undefined }] }],
    ['pubsub', { waiters: undefined, owners: [{ process: { pid: process.pid } }] }],
  ])('without %s the list omits the information of that command', async (command, expected) => {
    await user.allow(command);
    const held = await holdElsewhere((await openClient()).getLock(freshName()));
    const entries = await listed(await openClient({ url: url() }));
    expect(entries.get(held.lockName)).toMatchObject(expected);
    await held.release();
  });

  test('without scan the list says what is missing', async () => {
    await user.allow('scan');
    await expect(listed(await openClient({ url: url() }))).rejects.toMatchObject({
      code: 'ERR_LOCK_REFUSED',
      rule: '+scan',
    });
  });
});
