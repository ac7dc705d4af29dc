import { afterEach, describe, expect, test } from '@jest/globals';
import { Cluster } from 'ioredis';
import { createClient, type CreateClientOptions } from '../../../src/client/create-client.js';
import { doctor } from '../../../src/client/doctor.js';
import type { DoctorOptions, Finding } from '../../../src/inspection/doctor/finding.js';
import { findingsIn, infoIn } from '../../../src/inspection/doctor/server-info.js';
import { TestClock } from '../../support/clients/lock-clients.js';
import { projectFiles, readProjectFile } from '../../support/project/project-files.js';
import { FaultProxy } from '../../support/proxy/proxy.js';
import { serverMajor } from '../../support/servers/server-version.js';
import { startServer, type RedisServer, type ServerOptions } from '../../support/servers/servers.js';
import { until } from '../../support/time/until.js';

/* Each finding of the doctor, on a real server that is set up badly. */

const stops: (() => Promise<unknown>)[] = [];
/** What the tests of this file have seen: `<check> <level>`. */
const seen = new Set<string>();

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function start(options: ServerOptions = {}): Promise<RedisServer> {
  const server = await startServer(options);
  stops.push(() => server.stop());
  return server;
}

/** Runs the doctor with a client of its own, and checks that each finding has an advice and that all else has none. */
async function examine(
  connection: CreateClientOptions,
  options: DoctorOptions = { probes: false },
  clock = new TestClock(),
): Promise<Finding[]> {
  const client = createClient(connection, { clock });
  try {
    return noted(await doctor(client, options));
  } finally {
    await client.close();
  }
}

function noted(findings: Finding[]): Finding[] {
  for (const { check, level } of findings) seen.add(`${check} ${level}`);
  const isComplete = ({ level, advice, message }: Finding): boolean =>
    message !== '' && (level === 'ok' ? advice === undefined : (advice ?? '').length > 10);
  expect(findings.filter((finding) => !isComplete(finding))).toEqual([]);
  return findings;
}

const told = (findings: readonly Finding[], check: Finding['check']): Finding | undefined =>
  findings.find((finding) => finding.check === check);

/** A user of a server that may use every command except these. */
async function userWithout(server: RedisServer, ...commands: string[]): Promise<string> {
  const channels = serverMajor() >= 7 ? ['&*'] : [];
  await server.command('ACL', 'SETUSER', 'app', 'reset', 'on', '>secret', '~*', ...channels, '+@all', ...commands);
  return `redis://app:secret@${server.host}:${server.port}`;
}

describe('one server', () => {
  test('in order is told without a finding, except that it keeps nothing on disk', async () => {
    const server = await start({ loneMaster: false });
    const findings = await examine({ url: server.url }, {});
    expect(findings.filter(({ level }) => level !== 'ok')).toMatchObject([{ check: 'persistence', level: 'note' }]);
    await server.command('CONFIG', 'SET', 'appendonly', 'yes');
    expect(told(await examine({ url: server.url }), 'persistence')).toMatchObject({ level: 'ok' });
  });

  test('behind a proxy that confirms subscriptions and delivers no message, a waiter fails', async () => {
    const server = await start();
    const proxy = await FaultProxy.start(server.address);
    stops.push(() => proxy.close());
    proxy.dropMessages();
    const findings = await examine({ url: proxy.url }, {});
    const ofWaiter = findings.find(({ message }) => message.startsWith('a waiter'));
    expect(ofWaiter).toMatchObject({
      check: 'permissions',
      level: 'error',
      message: 'a waiter fails: the server confirmed the subscription and delivered no message',
      advice: expect.stringContaining('pub/sub'),
    });
    // The lock that the call waited for was released.
    const isLock = /^holdfast:doctor:/;
    expect((await server.keys()).filter((key) => isLock.test(key))).toEqual([]);
  });

  test('behind a slow link, a waiter works', async () => {
    const server = await start();
    const proxy = await FaultProxy.start(server.address);
    stops.push(() => proxy.close());
    proxy.delay(220, { direction: 'to-server' });
    proxy.delay(220, { direction: 'to-client' });
    const findings = await examine({ url: proxy.url }, {});
    expect(findings.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('behind a proxy that does not confirm subscriptions, a waiter fails', async () => {
    const server = await start();
    const proxy = await FaultProxy.start(server.address);
    stops.push(() => proxy.close());
    proxy.swallow({ command: 'SUBSCRIBE', times: Infinity });
    const findings = await examine({ url: proxy.url }, {});
    expect(findings.filter(({ level }) => level === 'error').map(({ message }) => message)).toEqual(
      expect.arrayContaining(['a waiter fails: the server did not confirm the subscription']),
    );
  });

  test('that may delete keys, and one whose memory is nearly full, are told with the setting to change', async () => {
    const server = await start();
    await server.command('CONFIG', 'SET', 'maxmemory', '1gb', 'maxmemory-policy', 'volatile-ttl');
    const evicting = await examine({ url: server.url });
    expect(told(evicting, 'eviction')).toMatchObject({
      level: 'error',
      message: expect.stringContaining('volatile-ttl'),
      advice: expect.stringContaining('noeviction'),
    });
    expect(told(evicting, 'memory')).toMatchObject({ level: 'ok' });
    const [, used] = /^used_memory:(\d+)/m.exec(String(await server.command('INFO', 'memory')))!;
    await server.command('CONFIG', 'SET', 'maxmemory', String(Number(used)), 'maxmemory-policy', 'noeviction');
    const full = await examine({ url: server.url });
    expect(told(full, 'eviction')).toMatchObject({ level: 'ok' });
    expect(told(full, 'memory')).toMatchObject({ level: 'warning', advice: expect.stringContaining('maxmemory') });
  });

  test('whose memory is full: every kind fails, and the finding does not advise a permission', async () => {
    const server = await start();
    await server.setMaxmemory(1);
    const findings = await examine({ url: server.url }, {});
    const permissions = findings.filter(({ check, level }) => check === 'permissions' && level === 'error');
    expect(permissions.length).toBeGreaterThan(5);
    for (const { message, advice } of permissions) {
      expect(message).toContain('maxmemory');
      expect(advice).not.toContain('allow');
    }
  });

  test('that is a node of a cluster is an error for a client that knows this node alone', async () => {
    const server = await start({ loneMaster: true });
    expect(told(await examine({ url: server.url }), 'cluster')).toMatchObject({
      level: 'error',
      advice: expect.stringContaining('--cluster'),
    });
  });

  test('whose clock or whose distance is off is told', async () => {
    const server = await start();
    const clock = new TestClock();
    clock.jumpWall(5_000);
    expect(told(await examine({ url: server.url }, { probes: false }, clock), 'clock')).toMatchObject({
      level: 'note',
      message: expect.stringMatching(/^the clock of the server is [45]\d{3} ms behind$/),
      advice: expect.stringContaining('NTP'),
    });
    const proxy = await FaultProxy.start(server.address);
    stops.push(() => proxy.close());
    proxy.delay(60, { direction: 'to-client' });
    expect(told(await examine({ url: proxy.url, commandTimeout: 1_500 }), 'latency')).toMatchObject({
      level: 'warning',
      advice: expect.stringContaining('commandTimeout'),
    });
  });
});

describe('replicas', () => {
  test('a replica is an error, and its refusals of all kinds take one command deadline', async () => {
    const master = await start({ loneMaster: false });
    const replica = await start({ replicaOf: master.address });
    const startedAt = performance.now();
    const findings = await examine({ url: replica.url, commandTimeout: 1_000 }, {});
    expect(performance.now() - startedAt).toBeLessThan(4_000);
    expect(told(findings, 'role')).toMatchObject({ level: 'error', advice: expect.stringContaining('master') });
    const lock = findings.find(({ message }) => message.startsWith('getLock fails'));
    expect(lock?.advice).toContain('npx holdfast explain ERR_LOCK_REDIS_UNAVAILABLE');
  });

  test('a replica that no grant waits for is a note, and too few for replicas.acks are a warning', async () => {
    const master = await start({ loneMaster: false });
    const acks = { replicas: { acks: 1, timeout: 200 } };
    const findings = await examine({ url: master.url, ...acks }, {});
    expect(told(findings, 'replicas')).toMatchObject({
      level: 'warning',
      advice: expect.stringContaining('start a replica'),
    });
    const lock = findings.find(({ message }) => message.startsWith('getLock fails'));
    expect(lock?.advice).toContain('replicas.acks');
    await start({ replicaOf: master.address });
    await until(
      async () => told(await examine({ url: master.url }), 'replicas')?.level === 'note',
      'the replica is connected, and no grant waits for it',
    );
    const confirmed = await examine({ url: master.url, ...acks });
    expect(told(confirmed, 'replicas')).toMatchObject({ level: 'ok', message: expect.stringContaining('1 must') });
  });
});

describe('permissions', () => {
  test.each([
    ['-info', 'server', 'note', '+info'],
    ['-time', 'time', 'error', '+time'],
    ['-pubsub', 'pub/sub', 'warning', '+pubsub'],
    ['-client', 'processes', 'note', '+client|setname and +client|list'],
  ] as const)('a user with %s: the finding %s is a %s that advises %s', async (rule, check, level, advised) => {
    const server = await start();
    const url = await userWithout(server, rule);
    expect(told(await examine({ url }), check)).toMatchObject({ level, advice: expect.stringContaining(advised) });
  });

  test('a user without any permission for keys works after it got what each finding advises', async () => {
    const server = await start();
    const url = await userWithout(server, '-@all', '+info', '+select', '+hello', '+ping', '+client', '+auth');
    const kinds = new Set<string>();
    let errors: Finding[];
    let rounds = 0;
    do {
      errors = (await examine({ url }, {})).filter(({ level }) => level === 'error');
      for (const { check, message } of errors) if (check === 'permissions') kinds.add(message.split(' fails')[0]!);
      const rules = errors.flatMap(({ advice }) => advice!.match(/\+[\w|]+/g) ?? []);
      if (rules.length > 0) await server.command('ACL', 'SETUSER', 'app', ...rules);
      rounds += 1;
    } while (errors.length > 0 && rounds < 40);
    expect(errors).toEqual([]);
    expect([...kinds].sort()).toEqual([
      'a waiter',
      ...[
        'getCountDownLatch',
        'getFairLock',
        'getFencedLock',
        'getLock',
        'getMultiLock',
        'getPermitExpirableSemaphore',
      ],
      ...['getReadWriteLock', 'getSemaphore', 'getSpinLock'],
    ]);
  }, 60_000);
});

test('in a cluster with sharded pub/sub, classic pub/sub is a note', async () => {
  const server = await start({ loneMaster: true });
  const inCluster = async (shardedSubscriptions: boolean): Promise<Finding | undefined> => {
    const redis = new Cluster([server.address], { lazyConnect: true });
    return told(await examine({ redis, shardedSubscriptions }), 'pub/sub');
  };
  const note = { level: 'note', advice: expect.stringContaining('shardedSubscriptions') };
  expect(await inCluster(false)).toMatchObject(serverMajor() >= 7 ? note : { level: 'ok' });
  if (serverMajor() < 7) seen.add('pub/sub note');
  if (serverMajor() >= 7)
    expect(await inCluster(true)).toMatchObject({ level: 'ok', message: expect.stringMatching(/^sharded/) });
});

test('what the tests cannot start is told with an advice, too: an old server, and one that hides its settings', () => {
  const of = (text: string): Finding[] => noted(findingsIn(infoIn(text), 'server', false, 0));
  expect(told(of('redis_version:5.0.14\r\nrole:master\r\n'), 'version')).toMatchObject({ level: 'error' });
  const hidden = of('role:master\r\n');
  expect(told(hidden, 'version')).toMatchObject({ level: 'note', advice: expect.stringContaining('provider') });
  expect(told(hidden, 'eviction')).toMatchObject({ level: 'note', advice: expect.stringContaining('noeviction') });
});

test('every key that the probes leave has an expiry, with a key prefix, too', async () => {
  const server = await start();
  for (const keyPrefix of ['', 'app:']) {
    const findings = await examine({ url: server.url, keyPrefix }, {});
    expect(findings.filter(({ check, level }) => check === 'permissions' && level !== 'ok')).toEqual([]);
  }
  for (const key of await server.keys()) {
    expect({ key, ttl: await server.command('PTTL', key) }).toEqual({ key, ttl: expect.any(Number) });
    expect(Number(await server.command('PTTL', key))).not.toBe(-1);
  }
});

// After all others: each finding in the source was seen above, so that each has an advice.
test('no finding of the source is missing in this file', () => {
  const source = projectFiles('src/inspection/doctor', '.ts').map(readProjectFile).join('\n');
  const made = [...source.matchAll(/\bfinding\(\s*'([\w/]+)',\s*'(\w+)'/g)].map(
    ([, check, level]) => `${check} ${level}`,
  );
  expect(made.length).toBeGreaterThan(12);
  expect(made.filter((each) => !seen.has(each))).toEqual([]);
});
