import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client.js';
import type { Hold } from '../../src/core/hold.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { SCRIPTS } from '../nemesis/server-truth.js';
import type { Fault } from '../support/fault.js';
import { holdElsewhere, inFlow, outcome, pause } from '../support/lock-clients.js';
import type { MonitorLine, MonitorLog } from '../support/monitor-log.js';
import { FaultProxy } from '../support/proxy.js';
import { startServer, type RedisServer } from '../support/servers.js';
import { until } from '../support/until.js';
import { LEASE_MS, parkedBehind } from './operations.js';

const DEADLINE_MS = 600;
const WATCHDOG_MS = 600;
const SLACK_MS = 250;
const ACQUIRE = scripts.acquire.script!.sha;
const NESTED = scripts.acquireNested.script!.sha;
const PARTIAL = scripts.releasePartial.script!.sha;
const RELEASE = scripts.release.script!.sha;
const HAND_OFF = scripts.handOff.script!.sha;
const RENEW = scripts.renew.script!.sha;

let server: RedisServer;
let log: MonitorLog;
const clients: LockClient[] = [];
const proxies: FaultProxy[] = [];
let names = 0;

beforeAll(async () => {
  server = await startServer();
});

afterEach(async () => {
  for (const proxy of proxies) proxy.lift();
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
  log.stop();
  expect(await server.keys()).toEqual([]);
});

afterAll(() => server.stop());

interface Stage {
  readonly proxy: FaultProxy;
  readonly client: LockClient;
  readonly other: LockClient;
  readonly name: string;
}

async function stage(commandTimeout = DEADLINE_MS): Promise<Stage> {
  log = await server.monitor();
  for (const { source } of SCRIPTS.values()) await server.command('SCRIPT', 'LOAD', source);
  const proxy = await FaultProxy.start(server.address);
  proxies.push(proxy);
  const [client, other] = [proxy.url, server.url].map((url) =>
    createClient({ url, commandTimeout, lockWatchdogTimeout: WATCHDOG_MS }),
  ) as [LockClient, LockClient];
  clients.push(client, other);
  await Promise.all([client.ready(), other.ready()]);
  return { proxy, client, other, name: `late:${++names}` };
}

/** What scripts have changed in this lock since then. */
async function changes(name: string, since: number): Promise<string[]> {
  const changed = ({ source, command, args, time }: MonitorLine): boolean =>
    source === 'lua' && args[0] === name && ['HSET', 'PEXPIRE', 'HDEL', 'DEL'].includes(command) && time > since;
  return (await log.settle()).filter(changed).map(({ command, args }) => `${command} ${args.slice(1).join(' ')}`);
}

/** The server's clock, as its log tells it. */
async function now(): Promise<number> {
  const [seconds, micros] = (await server.command('TIME')) as [string, string];
  return Number(seconds) * 1000 + Number(micros) / 1000;
}

/** Something keeps every attempt of a command, or its answer, until the call has been rejected; `deliver` ends that. */
type Keeping = (stage: Stage, sha: string) => Promise<{ deliver(): Promise<void> }>;

const keepings: Readonly<Record<string, Keeping>> = {
  'in the network': async ({ proxy }, sha) => {
    const held = proxy.holdCommand({ sha, times: Infinity });
    return {
      async deliver() {
        const { count } = held;
        held.lift();
        const delivered = (): number =>
          proxy.log.filter(({ args, answeredAt }) => args[0] === sha && answeredAt !== undefined).length;
        await until(() => delivered() >= count, 'the server has answered what was held');
      },
    };
  },
  'in the socket of a server that stands': async () => {
    await server.pause();
    return { deliver: async () => server.resume() };
  },
  'by CLIENT PAUSE': async () => {
    await server.clientPause(60_000);
    return { deliver: () => server.clientUnpause() };
  },
  'and answered NOSCRIPT when it was too late': async ({ proxy }, sha) => answeredLate(proxy, sha, 'NOSCRIPT No matching script'),
  'and answered LOADING when it was too late': async ({ proxy }, sha) => answeredLate(proxy, sha, 'LOADING Redis is loading'),
  'and answered MOVED when it was too late': async ({ proxy }, sha) => answeredLate(proxy, sha, 'MOVED 1 127.0.0.1:1'),
};

function answeredLate(proxy: FaultProxy, sha: string, error: string): { deliver(): Promise<void> } {
  proxy.answer({ sha, times: Infinity }, `-${error}\r\n`);
  const held = proxy.holdReply({ sha, times: Infinity });
  return {
    async deliver() {
      held.lift();
    },
  };
}

/** Calls that create or extend something. Each is begun when its command is being kept, and must fail. */
const calls: Readonly<
  Record<string, { sha: string; prepare(stage: Stage): Promise<{ call: () => Promise<unknown>; end?: () => Promise<unknown> }> }>
> = {
  acquire: {
    sha: ACQUIRE,
    prepare: async ({ client, name }) => ({ call: () => inFlow(async () => client.getLock(name).acquire({ waitTime: 0 })) }),
  },
  'nested acquire': {
    sha: NESTED,
    async prepare({ client, name }) {
      const outer = await holdElsewhere(client.getLock(name), LEASE_MS);
      return {
        call: () => outer.run(() => client.getLock(name).acquire({ waitTime: 0, leaseTime: 2 * LEASE_MS })),
        end: () => outer.release(),
      };
    },
  },
  'partial release': {
    sha: PARTIAL,
    async prepare({ client, name }) {
      const outer = await holdElsewhere(client.getLock(name), LEASE_MS);
      const nested = await outer.run(() => client.getLock(name).acquire({ leaseTime: 2 * LEASE_MS }));
      return { call: () => nested.release(), end: () => outer.release() };
    },
  },
  'hand-off': {
    sha: HAND_OFF,
    async prepare({ client, proxy, name, other }) {
      const hold = await holdElsewhere(client.getLock(name), LEASE_MS);
      const [waiting] = await parkedBehind({ client, proxy, name, other });
      return { call: () => hold.release(), end: async () => (await waiting!).release() };
    },
  },
  extend: {
    sha: RENEW,
    async prepare({ client, name }) {
      const hold = await holdElsewhere(client.getLock(name), LEASE_MS);
      return { call: () => hold.extend(2 * LEASE_MS), end: () => hold.release() };
    },
  },
};

describe.each(Object.entries(calls))('R2: %s', (_call, { sha, prepare }) => {
  test.each(Object.entries(keepings))('R2: kept %s, it changes nothing once it has been rejected', async (_, keep) => {
    const each = await stage();
    const { call, end } = await prepare(each);
    const kept = await keep(each, sha);
    const called = performance.now();
    expect(await outcome(call())).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
    expect(performance.now() - called).toBeLessThan(DEADLINE_MS + SLACK_MS);
    const rejected = Date.now();
    await pause(20);
    await kept.deliver();
    // What was taken before, or is no longer wanted, is given back; nothing is put in, counted or prolonged.
    const takenBack = ({ [0]: change = '' }: string[]): boolean => change.startsWith('HDEL');
    await pause(150);
    const since = await changes(each.name, rejected);
    const own = since.filter((change) => !takenBack([change]));
    if (end === undefined) expect(own).toEqual([]);
    each.proxy.lift();
    if (end) {
      if (_call === 'hand-off') expect(own.length).toBeLessThanOrEqual(2); // the waiter takes it, as a new owner
      else expect(own).toEqual([]);
      await end();
    }
    await until(async () => (await server.keys()).length === 0, 'the key is gone', 1_000 + SLACK_MS);
    // No watchdog is at work for it.
    const renewals = each.proxy.log.filter(({ args }) => args[0] === RENEW).length;
    await pause(WATCHDOG_MS / 3 + 50);
    expect(each.proxy.log.filter(({ args }) => args[0] === RENEW)).toHaveLength(renewals);
  });
});
