import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import { contend } from '../support/clients/contention.js';
import { SentinelSetup } from '../support/servers/sentinel.js';
import { until } from '../support/time/until.js';
import { expectNoOverlap } from '../support/serious.js';

/*
 * Several flows through failovers. Both replicas confirm every grant, so no grant can be lost, whichever of them takes
 * over. So two flows may never be inside at the same time, as long as no hold has to be renewed. If only the old master
 * knew of a renewal, the lease ends sooner than its holder expects, with any `acks` (docs/topologies.md). The nemesis
 * tests the consequences.
 */

let setup: SentinelSetup;
const clients: LockClient[] = [];
beforeAll(async () => {
  setup = await SentinelSetup.start();
}, 60_000);
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close({ releaseHolds: true })));
  await setup.stop();
}, 60_000);

function open(lockWatchdogTimeout: number): LockClient {
  const replicas = { acks: 2, timeout: 1_000 };
  const client = createClient({ redis: setup.connection(), lockWatchdogTimeout, replicas });
  clients.push(client);
  return client;
}

const EXPECTED = new Set([
  'ERR_LOCK_REDIS_UNAVAILABLE',
  // One of the servers is unavailable.
  'ERR_LOCK_NOT_REPLICATED',
  'ERR_LOCK_LOST',
]);
const mayFail = (error: unknown): boolean => EXPECTED.has((error as { code?: string }).code ?? '');

test('R3: flows exclude each other during planned and unplanned failovers of Sentinel, and learn of their losses', async () => {
  // A release that was lost with its master leaves the lock to the end of its lease.
  const patient = [open(4_000), open(4_000)];
  // A failover after a death takes longer than this: Sentinel first waits for one second.
  const brief = [open(800), open(800)];
  let over = false;
  const more = (): boolean => !over;
  const short = { flows: 16, sections: 1, holdMs: 5, mayFail, more };
  const long = { flows: 6, sections: 1, holdMs: 1_500, mayFail, more };
  const loads = [
    contend({ ...short, clients: patient, names: ['a', 'b', 'c'] }),
    contend({ ...long, clients: brief, names: ['long', 'longer'] }),
  ];
  const failovers = (async () => {
    for (const planned of [true, false, true]) {
      const master = await setup.master();
      // Connections that were not notified still lead to the old server, which replies as a master.
      if (planned) await setup.failover();
      else {
        await master.kill9();
        await setup.switchedFrom(master);
      }
      await setup.heal();
      // Another server has taken over. Sentinel also does this on its own if a server is silent for one second, so the
      // killed server may be the master again by now.
      const next = await setup.master();
      await next.resetCommandStats();
      const taken = async (): Promise<number> => (await next.commandStats()).get('hset') ?? 0;
      await until(async () => (await taken()) > 200, 'locks are taken at the new master', 30_000);
    }
  })().finally(() => (over = true));
  const [[brisk, slow]] = await Promise.all([Promise.all(loads), failovers]);
  expectNoOverlap(brisk!.overlaps);
  expect(brisk!.values).toEqual(brisk!.entered);
  for (const { entered } of [brisk!, slow!]) expect(Math.min(...entered)).toBeGreaterThan(0);
  // The clients of the long sections could not renew them while there was no master.
  expect(slow!.told).toBeGreaterThan(0);
}, 120_000);
