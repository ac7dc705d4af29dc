import { createHook } from 'node:async_hooks';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import type { AcquireOptions } from '../../src/locks/arguments.js';
import type { ClientOptions } from '../../src/options.js';
import { inFlow } from '../support/clients/lock-clients.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';

let server: RedisServer;
const opened: LockClient[] = [];
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());
afterEach(() => Promise.all(opened.splice(0).map((client) => client.close({ releaseHolds: true }))));

function open(options: ClientOptions = {}): LockClient {
  const client = createClient({ url: server.url, ...options });
  opened.push(client);
  return client;
}

const turn = (): Promise<void> => new Promise(setImmediate);

/** Time, in ms, for which the server ran scripts. */
async function scriptMs(during: () => Promise<unknown>): Promise<number> {
  await server.command('CONFIG', 'RESETSTAT');
  await during();
  const stats = String(await server.command('INFO', 'commandstats'));
  return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=\d+,usec=(\d+)/g)].reduce(
    (sum, [, us]) => sum + Number(us) / 1_000,
    0,
  );
}

const READERS = 2_000;

test('2,000 reads that end at once, or each in a turn of its own, take the server less than 250 ms', async () => {
  const client = open();
  const read = client.getReadWriteLock('many').readLock();
  const take = () => Promise.all(Array.from({ length: READERS }, () => inFlow(async () => read.acquire())));
  for (const each of [() => Promise.resolve(), turn]) {
    const holds = await take();
    const took = await scriptMs(async () => {
      const released: Promise<void>[] = [];
      for (const hold of holds) {
        released.push(hold.release());
        await each();
      }
      await Promise.all(released);
    });
    expect(await server.keys()).toEqual([]);
    expect(took).toBeLessThan(250);
  }
});

test('nested reads among 1,000 readers end in less than 250 ms of the server', async () => {
  const read = open().getReadWriteLock('nested').readLock();
  const holds = await Promise.all(Array.from({ length: 1_000 }, () => inFlow(async () => read.acquire())));
  const nested = await Promise.all(holds.map((hold) => hold.run(() => read.acquire())));
  const took = await scriptMs(() => Promise.all(nested.map((hold) => hold.release())));
  expect(took).toBeLessThan(250);
  await Promise.all(holds.map((hold) => hold.release()));
  expect(await server.keys()).toEqual([]);
});

/** The promises that the process creates meanwhile. */
async function promisesCreated(during: () => Promise<unknown>): Promise<number> {
  let created = 0;
  const hook = createHook({ init: (_id, type) => void (created += Number(type === 'PROMISE')) });
  hook.enable();
  await during();
  hook.disable();
  return created;
}

test.each<[string, AcquireOptions]>([
  ['calls that wait', {}],
  ['calls that do not wait', { waitTime: 0 }],
])('%s: the work for a read behind releases in the background does not grow with their number', async (_, call) => {
  const read = open({ release: 'background' }).getReadWriteLock('many').readLock();
  const twoReads = async (): Promise<void> => {
    for (let i = 0; i < 2; i += 1) await read.withLock(call, () => undefined);
  };
  const perFlow = async (flows: number): Promise<number> => {
    const all = () => Promise.all(Array.from({ length: flows }, () => inFlow(twoReads)));
    return (await promisesCreated(all)) / flows;
  };
  await perFlow(10);
  const few = await perFlow(50);
  expect(await perFlow(400)).toBeLessThan(1.5 * few);
});
