import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../../src/client/create-client.js';
import { startServer, type RedisServer } from '../../support/servers/servers.js';
import { Jvm, REDISSON_VERSIONS } from './jvm.js';
import { FAIR_SCENARIOS } from './wire/fair-scenarios.js';
import { lockScenarios } from './wire/lock-scenarios.js';
import { Lockstep } from './wire/lockstep.js';
import { GROUP_SCENARIOS, MULTI_SCENARIOS } from './wire/multi-scenarios.js';
import { EXPIRABLE_SCENARIOS, LATCH_SCENARIOS, SEMAPHORE_SCENARIOS } from './wire/permit-scenarios.js';
import { READ_WRITE_SCENARIOS } from './wire/read-write-scenarios.js';
import { WATCHED } from './wire/scenario.js';

/*
 * Redisson and Holdfast make the same calls at the same time, each on separate keys. After each call results, keys,
 * types, fields, values, scores and messages are the same, and times to live differ by at most 100 ms.
 * wire/differences.ts lists the intended differences. A declared difference that does not occur fails, too.
 */

const version = process.env.HOLDFAST_REDISSON ?? REDISSON_VERSIONS[0];
const scenarios = [
  ...lockScenarios(),
  ...READ_WRITE_SCENARIOS,
  ...SEMAPHORE_SCENARIOS,
  ...LATCH_SCENARIOS,
  ...FAIR_SCENARIOS,
  ...EXPIRABLE_SCENARIOS,
  ...MULTI_SCENARIOS,
  ...GROUP_SCENARIOS,
];
const here = scenarios.filter((each) => each.in === undefined || each.in.includes(version));

let server: RedisServer;
let jvm: Jvm;
let lockstep: Lockstep;
const clients = new Map<string, LockClient>();

beforeAll(async () => {
  server = await startServer();
  jvm = await Jvm.start();
  for (const client of ['A', 'B']) {
    await jvm.createClient({ client, addresses: [server.url], lockWatchdogTimeout: WATCHED });
    clients.set(client, createClient({ url: server.url, lockWatchdogTimeout: WATCHED }));
  }
  lockstep = await Lockstep.open(server.url, jvm, clients);
  // The first calls of a JVM load classes.
  for (const scenario of here) if (/leases|every call/.test(scenario.name)) await lockstep.run(scenario, version);
});

afterAll(async () => {
  await lockstep.close();
  await Promise.all([...clients.values()].map((client) => client.close()));
  await jvm.close();
  await server.stop();
});

describe(`Redisson ${version} and Holdfast on the wire`, () => {
  test.each(here.map((scenario) => [scenario.name, scenario] as const))('%s', async (_name, scenario) => {
    expect(await lockstep.run(scenario, version)).toEqual([]);
  });
});

/** Methods that exist only for Java. */
const NOT_HERE: Readonly<Record<string, string>> = {
  getName: 'sends no command',
  newCondition: 'Redisson throws UnsupportedOperationException',
  subscribe: 'reactive form',
  unsubscribe: 'reactive form',
};

test.each(['lock', 'fenced', 'fair', 'semaphore', 'expirable', 'latch'])(
  'every call of %s is among the scenarios',
  async (kind) => {
    const order = { op: 'methods', client: 'A', object: { kind, name: 'methods' } };
    const methods = (await jvm.order<string[]>(order)).result;
    const called = new Set(
      here.flatMap(({ steps }) => steps.filter(({ object }) => object.kind === kind).map(({ method }) => method)),
    );
    const known = (method: string): boolean => called.has(method) || method.replace(/Async$/, '') in NOT_HERE;
    expect(methods.length).toBeGreaterThan(5);
    expect(methods.filter((method) => !known(method))).toEqual([]);
  },
);
