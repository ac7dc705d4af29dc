import { afterEach, describe, expect, test } from '@jest/globals';
import { Redis, type RedisOptions } from 'ioredis';
import { createClient, type CreateClientOptions, type LockClient } from '../../src/client/create-client.js';
import { closeClients, openProxy } from '../support/clients/lock-clients.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { until } from '../support/time/until.js';
import { operations, type Operation } from './operations.js';
import { reach, type Reached } from '../support/servers/topology.mjs';

/** The fate of one attempt: cut before the server sees it, cut after the server ran it, or a reply to try later. */
type Fate = 'before' | 'after' | 'later';

/** Those of the first attempts; the next one is let through. */
const FATES: readonly (readonly Fate[])[] = [
  ['before'],
  ['after'],
  ['later', 'before'],
  ['later', 'after'],
  ['later', 'later', 'before'],
  ['later', 'later', 'after'],
  ['before', 'before'],
  ['before', 'after'],
  ['after', 'before'],
  ['after', 'after'],
  ['later', 'after', 'after'],
  ['later', 'before', 'after'],
];

const WATCHDOG_MS = 3_000;

const clients: LockClient[] = [];
const given: Redis[] = [];

afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
  for (const redis of given.splice(0)) redis.disconnect();
  await closeClients(); // and the proxies
});

async function opened(options: CreateClientOptions): Promise<LockClient> {
  const client = createClient(options);
  clients.push(client);
  await client.ready();
  return client;
}

function redisWith(url: string, options: RedisOptions): Redis {
  const redis = new Redis(url, { ...options, replyMapping: 'legacy' });
  given.push(redis.on('error', () => undefined));
  return redis;
}

const connections: Readonly<Record<string, (url: string) => Reached>> = {
  'a URL': (url) => reach(url),
  'a connection that queues, resends and retries without a limit': (url) =>
    reach(url, {
      enableOfflineQueue: true,
      autoResendUnfulfilledCommands: true,
      autoResubscribe: true,
      maxRetriesPerRequest: null,
      enableAutoPipelining: true,
      reconnectOnError: () => 2,
      retryStrategy: () => 1,
    }),
};

function strike(proxy: FaultProxy, fate: Fate, sha: string, name: string): { readonly count: number } {
  const selector = { command: 'EVALSHA', sha, contains: name };
  if (fate === 'before') return proxy.cutBefore(selector);
  if (fate === 'after') return proxy.cutAfter(selector);
  return proxy.answer(selector, '-LOADING Redis is loading the dataset in memory\r\n');
}

/** All observable results of an operation with these faults, and the expected ones. */
async function outcomeOf(
  operation: Operation,
  fates: readonly Fate[],
  connection: (url: string) => Reached,
): Promise<{ seen: unknown; wanted: unknown }> {
  const { proxy, url } = await openProxy();
  // A dozen of these run side by side, and each connects up to three times more: none of that is to run out of time.
  const client = await opened({ ...connection(url), lockWatchdogTimeout: WATCHDOG_MS, commandTimeout: 10_000 });
  const other = await opened(reach(testRedisUrl()));
  const name = freshName();
  const prepared = await operation.prepare({ client, other, proxy, name });
  const freed: string[] = [];
  const listener = redisWith(testRedisUrl(), {});
  listener.on('message', (_, message) => freed.push(message));
  await listener.subscribe(`redisson_lock__channel:{${name}}`);
  const before = attemptsOf(proxy, operation, name);

  const faults = fates.map((fate) => strike(proxy, fate, operation.sha, name));
  const answer = await prepared.act();
  const seen = {
    answer,
    struck: faults.map(({ count }) => count),
    // Any other command is an unwanted repeat by ioredis.
    attempts: attemptsOf(proxy, operation, name) - before,
    state: await admin().hgetall(name),
    lease: leaseOf(prepared.leaseMs, await admin().pttl(name)),
    lost: prepared.kept?.filter((hold) => hold.validFor() === 0).length ?? 0,
  };
  const wanted = {
    answer: 'answer' in prepared ? prepared.answer : answer,
    struck: fates.map(() => 1),
    attempts: fates.length + 1,
    state: prepared.after(),
    lease: 'as asked for',
    lost: 0,
  };
  await prepared.end();
  // The next owner finds the lock free, and leaves it free.
  await client.getLock(name).withLock({ waitTime: 0 }, () => undefined);
  await until(() => freed.length >= 2, 'both releases were published');
  return { seen: { ...seen, freed }, wanted: { ...wanted, freed: ['0', '0'] } };
}

function attemptsOf(proxy: FaultProxy, { sha }: Operation, name: string): number {
  return proxy.log.filter(({ args }) => args[0] === sha && args.includes(name)).length;
}

/** An operation takes no longer than a few seconds, whatever is cut. */
function leaseOf(leaseMs: number | undefined, ttl: number): string {
  if (leaseMs === undefined) return ttl === -2 || ttl > 0 ? 'as asked for' : `${ttl} ms`;
  return ttl > leaseMs - 5_000 && ttl <= leaseMs ? 'as asked for' : `${ttl} ms instead of ${leaseMs} ms`;
}

describe.each(Object.entries(connections))('R1: over %s', (_, connection) => {
  test.each(Object.entries(operations))(
    'R1: %s: with the connection cut before or after the server runs it, at any attempt, it takes effect once and says so',
    async (_operation, operation) => {
      const outcomes = await Promise.all(
        FATES.map(async (fates) => [fates.join(', '), await outcomeOf(operation, fates, connection)] as const),
      );
      const each = (part: 'seen' | 'wanted'): unknown =>
        Object.fromEntries(outcomes.map(([fates, outcome]) => [fates, outcome[part]]));
      expect(each('seen')).toEqual(each('wanted'));
    },
  );
});
