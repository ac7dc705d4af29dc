import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Timer } from '../../src/clock.js';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import type { ClientOptions } from '../../src/options.js';
import type { RedLock } from '../../src/several/red-lock.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { LINE_CHECK_MS } from '../../src/timing.js';
import { startWorker, type Worker } from '../support/processes/child.js';
import { elapsed } from '../support/time/elapsed.js';
import { holdElsewhere, inFlow, outcome, pause, ready, TestClock } from '../support/clients/lock-clients.js';
import { FaultProxy } from '../support/proxy/proxy.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { SharedCounter } from '../support/processes/shared-counter.js';
import { QUIET_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';
import { expectNoOverlap } from '../support/serious.js';

/* Three independent servers, each behind a proxy that loses replies: a cut command has been executed. */

const COMMAND_TIMEOUT_MS = 600;
const WATCHDOG_MS = 1_500;
/** For tests with a limit: an attempt takes much longer than a call on a busy machine, and a lease longer than the test. */
const PATIENT = { commandTimeout: 6_000, lockWatchdogTimeout: 60_000 };
/** Less than an attempt of 2,000 ms. */
const AT_ONCE_MS = 1_500;
const LOSSES = ['cutAfter', 'swallow'] as const;
/** The servers whose replies are lost: one, and a majority. */
const STRUCK = [[1], [0, 2]];
const CASES = LOSSES.flatMap((loss) => STRUCK.map((servers) => [loss, servers] as const));

const servers: RedisServer[] = [];
const proxies: FaultProxy[] = [];
const clients: LockClient[] = [];
const workers: Worker[] = [];
let names = 0;

beforeAll(async () => {
  servers.push(...(await Promise.all([startServer(), startServer(), startServer()])));
  proxies.push(...(await Promise.all(servers.map(({ address }) => FaultProxy.start(address)))));
  // A fault that strikes an EVALSHA is not to meet the one that is answered with NOSCRIPT.
  for (const server of servers)
    for (const { script } of Object.values(scripts)) if (script) await server.command('SCRIPT', 'LOAD', script.source);
});
afterAll(async () => {
  await Promise.all(proxies.map((proxy) => proxy.close()));
  await Promise.all(servers.map((server) => server.stop()));
});
afterEach(async () => {
  for (const proxy of proxies) proxy.lift();
  await Promise.all(workers.splice(0).map((worker) => worker.close()));
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
  for (const server of servers) {
    await until(async () => (await server.keys()).length === 0, 'no key is left');
    await until(async () => (await server.channels()).length === 0, 'no channel is left');
  }
});

interface Opened {
  readonly lock: RedLock;
  readonly name: string;
  readonly opened: readonly LockClient[];
}

async function open(options: ClientOptions = {}, clock = new TestClock()): Promise<Opened> {
  const name = `red:${(names += 1)}`;
  const terms = { commandTimeout: COMMAND_TIMEOUT_MS, lockWatchdogTimeout: WATCHDOG_MS, ...options };
  const opened = proxies.map((proxy) => createClient({ url: proxy.url, ...terms }, { clock }));
  clients.push(...opened);
  await ready(...opened);
  return { lock: opened[0]!.getRedLock(...opened.map((client) => client.getLock(name))), name, opened };
}

/** Without the checks of a server in whose line a call waits: they notice after 100 ms that it does not reply. */
class UncheckedClock extends TestClock {
  override setTimer(ms: number, fn: () => void, keepsAlive?: boolean): Timer {
    if (Math.round(ms) === LINE_CHECK_MS) return { cancel: () => undefined };
    return super.setTimer(ms, fn, keepsAlive);
  }
}

const counts = async (name: string): Promise<number[][]> =>
  Promise.all(servers.map(async (server) => ((await server.command('HVALS', name)) as string[]).map(Number)));
const free = async (name: string): Promise<boolean> => (await counts(name)).every((held) => held.length === 0);

/** How many releases a server has answered, through its proxy. */
const releasesAnswered = (at: number): number =>
  proxies[at]!.log.filter(({ args, answeredAt }) => args[0] === scripts.release.script!.sha && answeredAt !== undefined)
    .length;

const losing = (
  at: readonly number[],
  loss: (typeof LOSSES)[number],
  script: { script: { sha: string } | undefined },
) => at.map((server) => proxies[server]![loss]({ command: 'EVALSHA', sha: script.script!.sha }));

describe.each(CASES)('R1, R28: %s: replies of servers %j are lost', (loss, struck) => {
  test('to the acquire: at most one hold at each of them, in time, and nothing is left after the release', async () => {
    const { lock, name } = await open(PATIENT);
    const faults = losing(struck, loss, scripts.acquire);
    const began = performance.now();
    const hold = await inFlow(async () => lock.acquire({ waitTime: 20_000 }));
    expect(elapsed(began)).toBeLessThan(struck.length === 1 ? AT_ONCE_MS : 2 * PATIENT.commandTimeout);
    // The call needs a majority, and the requests to the minority may be sent a moment later.
    await Promise.all(faults.map(({ applied }) => applied));
    for (const fault of faults) expect(fault.count).toBe(1);
    for (const held of await counts(name)) expect(held.filter((count) => count !== 1)).toEqual([]);
    for (const held of await counts(name)) expect(held.length).toBeLessThanOrEqual(1);
    expect(hold.validFor()).toBeGreaterThan(0);
    await hold.release();
    await until(() => free(name), 'it is free everywhere');
  });

  test('to the release: the lock is free soon, a minority does not delay it, and the next owner acquires it', async () => {
    const { lock, name, opened } = await open(PATIENT);
    const hold = await inFlow(async () => lock.acquire());
    await until(
      () => opened.every((client) => client.holds().length === 1),
      'all have it, and their replies have come',
    );
    losing(struck, loss, scripts.release);
    const before = struck.map(releasesAnswered);
    const began = performance.now();
    await hold.release();
    expect(elapsed(began)).toBeLessThan(struck.length === 1 ? AT_ONCE_MS : PATIENT.commandTimeout);
    const next = await inFlow(async () => lock.acquire({ waitTime: 20_000 }));
    // The repeat of that release names an owner that no longer exists.
    await until(() => struck.every((at, n) => releasesAnswered(at) > before[n]!), 'the releases are repeated');
    expect(next.validFor()).toBeGreaterThan(0);
    await next.release();
    await until(() => free(name), 'it is free everywhere');
  });

  test('to renewals: they are repeated, and the hold stays valid', async () => {
    const { lock, name, opened } = await open({ lockWatchdogTimeout: 2 * WATCHDOG_MS });
    const hold = await inFlow(async () => lock.acquire());
    let lost = 0;
    hold.signal.addEventListener('abort', () => (lost += 1));
    const faults = losing(struck, loss, scripts.renew);
    await Promise.all(faults.map(({ applied }) => applied));
    const renewed = opened.map(() => 0);
    for (const [at, client] of opened.entries()) client.events.on('renewed', () => (renewed[at]! += 1));
    // Three periods of a third: longer than a lease.
    await until(() => renewed.every((times) => times >= 4), 'each is renewed again and again');
    for (const fault of faults) expect(fault.count).toBe(1);
    expect(lost).toBe(0);
    expect(hold.validFor()).toBeGreaterThan(0);
    expect((await counts(name)).flat()).toEqual([1, 1, 1]);
    await hold.release();
  });
});

test('R1: with two of three servers silent the acquire fails, and the client releases their grants', async () => {
  const { lock, name } = await open();
  for (const at of [0, 1]) {
    proxies[at]!.swallow({ command: 'EVALSHA', sha: scripts.acquire.script!.sha, times: Infinity });
  }
  expect(await outcome(inFlow(() => lock.tryLock(0, 20_000)))).toBe('ERR_LOCK_NO_QUORUM');
  for (const proxy of proxies) proxy.lift();
  // Long before its lease ends.
  await until(() => free(name), 'it is free everywhere');
  expect(await inFlow(() => lock.tryLock(10_000))).toBe(true);
});

test('R3, R28: a late grant that cannot be released delays no call past one command deadline', async () => {
  const commandTimeout = 3_000;
  const { lock, name } = await open({ commandTimeout });
  const beside = createClient({ url: servers[0]!.url });
  clients.push(beside);
  const theirs = await holdElsewhere(beside.getLock(name));
  proxies[1]!.swallow({ command: 'EVALSHA', times: Infinity });
  const granted = proxies[2]!.holdReply({ command: 'EVALSHA', sha: scripts.acquire.script!.sha, times: Infinity });
  const unreleased = proxies[2]!.swallow({ command: 'EVALSHA', sha: scripts.release.script!.sha, times: Infinity });
  const began = performance.now();
  let tookMs = Infinity;
  const call = outcome(inFlow(() => lock.tryLock(0, 20_000)));
  void call.then(() => (tookMs = elapsed(began)));
  await granted.executed;
  await pause(0.8 * commandTimeout);
  granted.lift();
  expect(await call).toBe('ERR_LOCK_NO_QUORUM');
  expect(tookMs).toBeLessThan(commandTimeout + 1_000);
  await unreleased.applied;
  for (const proxy of proxies) proxy.lift();
  await until(async () => (await counts(name)).slice(1).flat().length === 0, 'the grants are released');
  await theirs.release();
});

test('R3, R28: a call whose wait time ends with its first round leaves no waiter behind', async () => {
  const { lock, name } = await open();
  const beside = createClient({ url: servers[0]!.url });
  clients.push(beside);
  const theirs = await holdElsewhere(beside.getLock(name));
  const asked = proxies[0]!.observe({ command: 'EVALSHA', sha: scripts.acquire.script!.sha, times: Infinity });
  for (const at of [1, 2]) proxies[at]!.swallow({ command: 'EVALSHA', times: Infinity });
  const terms = { waitTime: COMMAND_TIMEOUT_MS / 6, leaseTime: 20_000 };
  expect(await outcome(inFlow(async () => lock.acquire(terms)))).toBe('ERR_LOCK_NO_QUORUM');
  expect(asked.count).toBe(1);
  for (const proxy of proxies) proxy.lift();
  await until(async () => (await counts(name)).slice(1).flat().length === 0, 'the grants are released');
  await theirs.release();
});

test('R3, R28: a call whose wait time ends at an unavailable server sends no requests to the others', async () => {
  const { lock, name } = await open(PATIENT, new UncheckedClock());
  const beside = [servers[0]!, servers[1]!].map(({ url }) => createClient({ url }));
  clients.push(...beside);
  const theirs = await Promise.all(beside.map((client) => holdElsewhere(client.getLock(name))));
  const terms = { waitTime: 2_000, leaseTime: 20_000 };
  const call = outcome(inFlow(async () => lock.acquire(terms)));
  let gate = -1;
  const findGate = async (): Promise<boolean> => {
    const channels = await Promise.all(servers.map((server) => server.channels()));
    gate = channels.findIndex(({ length }) => length > 0);
    return gate >= 0;
  };
  await until(findGate, 'it stands in line');
  const tried = proxies[gate]!.swallow({ command: 'EVALSHA', times: Infinity });
  const others = proxies.filter((_, at) => at !== gate);
  const asked = others.map((proxy) => proxy.swallow({ command: 'EVALSHA', times: Infinity }));
  await Promise.all(theirs.map((hold) => hold.release()));
  await tried.applied;
  expect(await call).toBe('ERR_LOCK_NO_QUORUM');
  expect(asked.map(({ count }) => count)).toEqual([0, 0]);
  for (const proxy of proxies) proxy.lift();
  await until(() => free(name), 'it is free everywhere');
});

test('R28: three processes exclude each other around an unprotected counter while replies of a minority are lost', async () => {
  const counter = await SharedCounter.start();
  const name = `red:${(names += 1)}`;
  for (let process = 0; process < 3; process += 1) {
    const worker = await startWorker({ execArgv: ['--import', 'tsx'] });
    workers.push(worker);
    for (const [at, { host, port }] of proxies.entries()) {
      const terms = { commandTimeout: COMMAND_TIMEOUT_MS, lockWatchdogTimeout: WATCHDOG_MS };
      // By no URL: wherever the suite runs, these are no servers of its topology.
      await worker.createClient({ redisOptions: { host, port }, ...terms }, `server ${at}`);
    }
  }
  const flows = new URL('./fixtures/red-lock-flows.mjs', import.meta.url);
  let over = false;
  const running = Promise.all(
    workers.map((worker) => worker.run(flows, { name, port: counter.port, flows: 3, rounds: 12 })),
  ).finally(() => (over = true));
  for (let round = 0; !over; round += 1) {
    const proxy = proxies[round % 3]!;
    const fault = proxy[LOSSES[round % 2]!]({ command: 'EVALSHA', nth: 1 + (round % 4) });
    await Promise.race([fault.applied, running]).catch(() => undefined);
    await pause(QUIET_MS);
    fault.lift();
  }
  const results = (await running) as { sections: number; failures: Record<string, number> }[];
  expectNoOverlap(counter.overlaps);
  // A section with a failed release has been counted, too.
  const counted = [name, name, name].join(', ');
  expect(counter.mostHolders(counted)).toBe(1);
  const sections = results.reduce((sum, each) => sum + each.sections, 0);
  expect(counter.value(counted)).toBeGreaterThanOrEqual(sections);
  expect(counter.value(counted)).toBe(counter.sections(counted));
  expect(sections).toBeGreaterThan(50);
  await counter.close();
}, 120_000);
