import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { register as globalRegister, Registry } from 'prom-client';
import { lockName, type LockClient } from '../../../src/index.js';
import { collectMetrics } from '../../../src/integrations/prometheus/index.js';
import { closeClients, holdElsewhere, openClient, outcome } from '../../support/clients/lock-clients.js';
import { send } from '../../support/http/http-client.js';
import { closeServers, serve } from '../../support/http/http-server.js';
import { admin, freshName } from '../../support/redis.js';
import { until } from '../../support/time/until.js';

let client: LockClient;
let register: Registry;
beforeEach(async () => {
  client = await openClient();
  register = new Registry();
});
afterEach(async () => {
  await closeServers();
  await closeClients();
});

/** Scrapes the registry over HTTP. Returns the value of each series, by its name with its labels. */
async function scrape(): Promise<Map<string, number>> {
  const url = await serve((_request, response) => {
    void register.metrics().then((text) => response.setHeader('content-type', register.contentType).end(text));
  });
  const { text } = await send(`${url}/metrics`, { method: 'GET' }).answer;
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  );
}

const groupOf = (name: string): string | undefined => name.split(':')[0];

test('a scrape has times in seconds, totals, gauges and groups, and never a name of a lock', async () => {
  collectMetrics({ client, register, groupOf });
  const lock = client.getLock(`order:${freshName()}`);
  await Promise.all([lock.withLock(() => undefined), lock.withLock(() => undefined)]);
  expect(client.stats()).toMatchObject({ handOvers: 1, waits: 1 });
  const hold = await holdElsewhere(lock);
  expect(await lock.tryLock()).toBe(false);
  const waiting = lock.acquire();
  await until(() => client.stats().waits === 2, 'it waits');
  const since = performance.now();
  await until(() => performance.now() - since > 30, 'some time has passed');
  expect([...(await scrape())]).toEqual(
    expect.arrayContaining([
      ['holdfast_holding', 1],
      ['holdfast_waiting', 1],
      ['holdfast_acquire_timeouts_total{kind="lock",mode="exclusive",group="order"}', 1],
    ]),
  );
  await hold.release();
  const second = await waiting;
  await lock.forceUnlock();
  await outcome(second.release());
  const series = await scrape();
  const of = 'kind="lock",mode="exclusive",group="order"';
  expect([...series]).toEqual(
    expect.arrayContaining([
      ['holdfast_holding', 0],
      ['holdfast_waiting', 0],
      [`holdfast_acquire_wait_seconds_count{${of},outcome="granted"}`, 4],
      [`holdfast_acquire_wait_seconds_count{${of},outcome="busy"}`, 1],
      [`holdfast_hold_seconds_count{${of},end="released"}`, 3],
      [`holdfast_hold_seconds_count{${of},end="lost"}`, 1],
      [`holdfast_hand_overs_total{${of}}`, client.stats().handOvers],
      [`holdfast_lost_holds_total{${of},reason="forced"}`, 1],
    ]),
  );
  const waited = series.get(`holdfast_acquire_wait_seconds_sum{${of},outcome="granted"}`)!;
  expect(waited).toBeGreaterThan(0.03);
  expect(waited).toBeLessThan(5);
  expect([...series.keys()].filter((name) => name.includes(lock.name))).toEqual([]);
});

test('permits and latches are measured, too, and the group is empty without groupOf', async () => {
  collectMetrics({ client, register });
  const semaphore = client.getSemaphore(freshName(), { permits: 1 });
  await semaphore.withPermits(() => undefined);
  await client.getCountDownLatch(freshName()).await();
  const names = [...(await scrape()).keys()];
  for (const kind of ['semaphore', 'latch']) {
    expect(names).toContain(
      `holdfast_acquire_wait_seconds_count{kind="${kind}",mode="shared",group="",outcome="granted"}`,
    );
  }
  await admin().del(semaphore.name);
});

test('the group is that of lockName, unless groupOf returns one', async () => {
  const stop = collectMetrics({ client, register });
  const id = freshName();
  await client.getLock(lockName`order:${id}`).withLock(() => undefined);
  stop();
  collectMetrics({ client, register, groupOf: (name) => (name.startsWith('order:') ? 'orders' : undefined) });
  await client.getLock(lockName`order:${id}`).withLock(() => undefined);
  await client.getLock(lockName`user:${id}`).withLock(() => undefined);
  const series = await scrape();
  for (const group of ['order:{}', 'orders', 'user:{}']) {
    const of = `kind="lock",mode="exclusive",group="${group}",end="released"`;
    expect(series.get(`holdfast_hold_seconds_count{${of}}`)).toBe(1);
  }
});

test('clients in one registry add up, and a client that is stopped no longer counts', async () => {
  const other = await openClient();
  collectMetrics({ client, register });
  const stop = collectMetrics({ client: other, register });
  const holds = [await client.getLock(freshName()).acquire(), await other.getLock(freshName()).acquire()];
  expect((await scrape()).get('holdfast_holding')).toBe(2);
  stop();
  expect((await scrape()).get('holdfast_holding')).toBe(1);
  for (const hold of holds) await hold.release();
  const of = 'kind="lock",mode="exclusive",group="",end="released"';
  expect((await scrape()).get(`holdfast_hold_seconds_count{${of}}`)).toBe(1);
});

test('a client that is measured twice counts once, until both are stopped', async () => {
  const stops = [collectMetrics({ client, register }), collectMetrics({ client, register })];
  const held = 'holdfast_hold_seconds_count{kind="lock",mode="exclusive",group="",end="released"}';
  expect((await client.getLock(freshName()).withLock(scrape)).get('holdfast_holding')).toBe(1);
  expect((await scrape()).get(held)).toBe(1);
  stops[0]!();
  stops[0]!();
  expect((await client.getLock(freshName()).withLock(scrape)).get('holdfast_holding')).toBe(1);
  expect((await scrape()).get(held)).toBe(2);
  stops[1]!();
  expect((await client.getLock(freshName()).withLock(scrape)).get('holdfast_holding')).toBe(0);
  expect((await scrape()).get(held)).toBe(2);
});

test('the global registry is the default, and a cleared registry gets the metrics again', async () => {
  for (let i = 0; i < 2; i += 1) {
    collectMetrics({ client })();
    expect(globalRegister.getSingleMetric('holdfast_waiting')).toBeDefined();
    globalRegister.clear();
  }
});

test('an invalid option is refused', () => {
  for (const [options, message] of [
    [undefined, 'an object with client'],
    [{}, 'a client, as createClient() returns it'],
    [{ client, register: {} }, 'a Registry of prom-client'],
    [{ client, groupOf: 'order' }, 'a function of the lock name'],
  ] as const) {
    expect(() => collectMetrics(options as never)).toThrow(message);
  }
});
