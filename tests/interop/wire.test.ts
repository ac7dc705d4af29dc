import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client.js';
import { startServer, type RedisServer } from '../support/servers.js';
import { Jvm, REDISSON_VERSIONS } from './jvm.js';
import { lockScenarios } from './wire/lock-scenarios.js';
import { Lockstep } from './wire/lockstep.js';
import { LATCH_SCENARIOS, SEMAPHORE_SCENARIOS } from './wire/permit-scenarios.js';
import { READ_WRITE_SCENARIOS } from './wire/read-write-scenarios.js';
import { WATCHED } from './wire/scenario.js';

/*
 * Redisson and Holdfast make the same calls at the same time, each on keys of its own. After each call results, keys,
 * types, fields, values, scores and messages are the same, and times to live within 100 ms. wire/differences.ts has
 * what is other on purpose; a difference that is declared and does not show fails, too.
 */

const version = process.env.HOLDFAST_REDISSON ?? REDISSON_VERSIONS[0];
const scenarios = [...lockScenarios(), ...READ_WRITE_SCENARIOS, ...SEMAPHORE_SCENARIOS, ...LATCH_SCENARIOS];
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
