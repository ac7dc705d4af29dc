import { expect, test } from '@jest/globals';
import { createClient } from '../../src/client.js';
import type { FaultProxy } from '../support/proxy.js';
import { inFlow, outcome, pause } from '../support/lock-clients.js';
import { parked } from '../support/parked.js';
import { until } from '../support/until.js';
import { clients, freeEverywhere, open, servers, startProxies } from './red-lock-stage.js';

test('R28: who was not handed its turn, and gets it while the others still give back, asks them when they have', async () => {
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
  'R28: a majority that stands still for longer than an attempt, and less than a command deadline, grants it (waits %s)',
  async (waitTime) => {
    const { lock, ...red } = await open({ commandTimeout: 1_500 });
    await lock.withLock(() => undefined);
    await freeEverywhere(red);
    for (const at of [0, 2]) await servers[at]!.pause();
    const call = inFlow(async () => lock.acquire({ waitTime }));
    call.catch(() => undefined);
    await pause(800); // an attempt takes 500
    for (const at of [0, 2]) servers[at]!.resume();
    expect(await outcome(call)).toBe('ok');
    await (await call).release();
    await freeEverywhere(red);
  },
);
