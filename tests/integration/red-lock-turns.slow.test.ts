import { expect, test } from '@jest/globals';
import { createClient } from '../../src/client/create-client.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { inFlow, outcome, pause } from '../support/clients/lock-clients.js';
import { parked } from '../support/clients/parked.js';
import { until } from '../support/time/until.js';
import { clients, freeEverywhere, open, servers, startProxies } from './red-lock-stage.js';

test('R28: a waiter that is granted one server while the others are being released acquires them right after', async () => {
  const proxies = await startProxies();
  const opened = proxies.map(({ url }) => createClient({ url }));
  clients.push(...opened);
  const name = 'red:lost-at-the-gate';
  const lock = opened[0]!.getRedLock(...opened.map((client) => client.getLock(name)));
  const hold = await inFlow(async () => lock.acquire());
  await until(() => opened.every((client) => client.holds().length === 1), 'each member is held');
  const waits = inFlow(async () => lock.acquire());
  waits.catch(() => undefined);
  const listens = ({ log }: FaultProxy): boolean => log.some((command) => command.name === 'SUBSCRIBE');
  await until(() => proxies.some(listens), 'it stands in line');
  const gate = proxies.findIndex(listens);
  await parked(proxies[gate]!, opened[gate]!, name);
  for (const [at, proxy] of proxies.entries()) if (at !== gate) proxy.delay(60, { direction: 'to-client' });
  await servers[gate]!.command('DEL', name);
  await hold.release();
  expect(await outcome(waits)).toBe('ok');
  await (await waits).release();
});

test.each([0, Infinity])(
  'R28: a majority that stops for more than an attempt and less than a command deadline grants it (waits %s)',
  async (waitTime) => {
    const { lock, ...red } = await open({ commandTimeout: 6_000 });
    await lock.withLock(() => undefined);
    await freeEverywhere(red);
    for (const at of [0, 2]) await servers[at]!.pause();
    const call = inFlow(async () => lock.acquire({ waitTime }));
    call.catch(() => undefined);
    await pause(2_500); // an attempt takes 2,000
    for (const at of [0, 2]) servers[at]!.resume();
    expect(await outcome(call)).toBe('ok');
    await (await call).release();
    await freeEverywhere(red);
  },
);

test.each([0, 1, 2])(
  'R28: one of three (%i) fails at once and two are busy: a try returns false, and a waiter acquires it later',
  async (at) => {
    const { lock, name, ...red } = await open();
    const other = await open({ name });
    const hold = await inFlow(async () => lock.acquire());
    await until(() => red.clients.every((client) => client.holds().length === 1), 'each member is held');
    await other.clients[at]!.close();
    for (let round = 0; round < 5; round += 1) expect(await inFlow(() => other.lock.tryLock())).toBe(false);
    expect(await inFlow(() => other.lock.tryLock(50))).toBe(false);
    const waits = inFlow(async () => other.lock.acquire());
    waits.catch(() => undefined);
    await until(
      async () => (await Promise.all(servers.map((server) => server.channels()))).flat().length > 0,
      'it waits',
    );
    await hold.release();
    expect(await outcome(waits)).toBe('ok');
    await (await waits).release();
  },
);

test.each([0, 1, 2])(
  'R28: a call whose wait is longer than its stay in one line waits on while one server hangs (%i)',
  async (at) => {
    const { lock, name, ...red } = await open({ commandTimeout: 4_500 });
    const other = await open({ name, commandTimeout: 4_500 });
    const hold = await inFlow(async () => lock.acquire());
    await until(() => red.clients.every((client) => client.holds().length === 1), 'each member is held');
    await servers[at]!.pause();
    const waits = inFlow(async () => other.lock.acquire());
    waits.catch(() => undefined);
    expect(await Promise.race([outcome(waits), pause(2_500)])).toBeUndefined(); // of 2,000 in one line
    await hold.release();
    expect(await outcome(waits)).toBe('ok');
    await (await waits).release();
    servers[at]!.resume();
    await freeEverywhere({ ...red, name });
  },
);

test('a call inside a member that finds the others busy nests in that member when they are free', async () => {
  const { lock, name, ...red } = await open();
  const other = await open({ name });
  const theirs = await Promise.all([1, 2].map((at) => inFlow(() => other.clients[at]!.getLock(name).acquire())));
  await inFlow(async () => {
    const outer = await red.clients[0]!.getLock(name).acquire();
    const waits = lock.acquire();
    waits.catch(() => undefined);
    const listening = async (): Promise<boolean> =>
      (await Promise.all(servers.map((server) => server.channels()))).flat().length > 0;
    await until(listening, 'it stands in line');
    await Promise.all(theirs.map((hold) => hold.release()));
    const hold = await waits;
    const counts = async (): Promise<unknown> => servers[0]!.command('HVALS', name);
    await until(async () => String(await counts()) === '2', 'it is nested at the first');
    await hold.release();
    await outer.release();
  });
  await freeEverywhere({ ...red, name });
});
