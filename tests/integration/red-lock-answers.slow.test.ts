import { afterEach, describe, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import type { NoQuorumError } from '../../src/errors.js';
import type { RedLock } from '../../src/several/red-lock.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { elapsed } from '../support/time/elapsed.js';
import { answered, inFlow, outcome, pause, ready } from '../support/clients/lock-clients.js';
import { parked } from '../support/clients/parked.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import type { RedisServer } from '../support/servers/servers.js';
import { QUIET_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';
import { clients, freeEverywhere, holders, open, servers, startProxies, timed } from './red-lock-stage.js';

/** An attempt takes a third of it. */
const COMMAND_TIMEOUT_MS = 9_000;
/** Less than an attempt, and more than a busy machine takes for a call that needs none. */
const AT_ONCE_MS = 2_000;

test.each([2, 3, 4, 5])(
  'of %i locks: a call that finds the RedLock busy waits or returns false, and acquires it later',
  async (size) => {
    const { clients: opened, name } = await open();
    const other = (await open({ name })).clients[0]!;
    const red = (client: LockClient): RedLock =>
      client.getRedLock(...Array.from({ length: size }, (_, n) => client.getLock(`${name}:${n}`)));
    const hold = await inFlow(async () => red(opened[0]!).acquire());
    expect(await red(other).tryLock()).toBe(false);
    expect(await outcome(red(other).acquire({ waitTime: 50 }))).toBe('ERR_LOCK_TIMEOUT');
    const waits = inFlow(async () => red(other).acquire());
    await pause(QUIET_MS);
    await hold.release();
    await (await waits).release();
  },
);

test('R28: the grant of one server is released when the other two of three are busy', async () => {
  const proxies = await startProxies();
  const opened = proxies.map(({ url }) => createClient({ url }));
  clients.push(...opened);
  await Promise.all(opened.map((client) => client.ready()));
  const { name, clients: others } = await open();
  const lock = opened[0]!.getRedLock(...opened.map((client) => client.getLock(name)));
  const holds = [
    await inFlow(async () => others[0]!.getLock(name).acquire()),
    await inFlow(async () => others[1]!.getLock(name).acquire()),
  ];
  const stalled = proxies.slice(0, 2).map((proxy) => proxy.stall({ direction: 'to-client', kind: 'command' }));
  const tried = inFlow(() => lock.tryLock());
  await until(async () => String(await holders(name)) === '1,1,1', 'the third grants it');
  await answered(opened[2]!);
  for (const stall of stalled) stall.lift();
  expect(await tried).toBe(false);
  await until(async () => String(await holders(name)) === '1,1,0', 'nothing is kept on the third');
  await Promise.all(holds.map((hold) => hold.release()));
});

test('R28: a call that finds two of three busy fails when the third has run its request and the release of it', async () => {
  const proxies = await startProxies();
  const opened = proxies.map(({ url }) => createClient({ url }));
  clients.push(...opened);
  const { name, clients: others } = await open();
  const lock = opened[0]!.getRedLock(...opened.map((client) => client.getLock(name)));
  await lock.withLock(() => undefined);
  await freeEverywhere({ clients: opened, name });
  const holds = await Promise.all([0, 1].map((at) => inFlow(async () => others[at]!.getLock(name).acquire())));
  const requests = [scripts.acquire, scripts.release].map(({ script }) =>
    proxies[2]!.holdCommand({ command: 'EVALSHA', sha: script!.sha }, 150),
  );
  const monitor = await servers[2]!.monitor();
  expect(await inFlow(() => lock.tryLock())).toBe(false);
  const run = (await monitor.settle()).filter(({ command }) => command === 'EVALSHA').map(({ args }) => args[0]);
  expect(run).toEqual([scripts.acquire.script!.sha, scripts.release.script!.sha]);
  expect(requests.map(({ count }) => count)).toEqual([1, 1]);
  monitor.stop();
  await Promise.all(holds.map((hold) => hold.release()));
});

test('of concurrent calls of one client, one sends requests to every server and the others stand in line', async () => {
  const proxies = await startProxies();
  const opened = proxies.map(({ url }) => createClient({ url }));
  clients.push(...opened);
  const lock = opened[0]!.getRedLock(...opened.map((client) => client.getLock('red:together')));
  const asked = ({ log }: FaultProxy): number =>
    log.filter(({ args }) => args[0] === scripts.acquire.script!.sha && args[2] === 'red:together').length;
  let when: number[] | undefined;
  const section = (): Promise<void> =>
    inFlow(() =>
      lock.withLock(() => {
        when ??= proxies.map(asked);
      }),
    );
  await Promise.all(Array.from({ length: 8 }, section));
  expect(when!.filter((tries) => tries <= 1).length).toBeGreaterThanOrEqual(2);
});

test('the next owner of one server tries the others right after their releases, without waiting for the replies', async () => {
  const proxies = await startProxies();
  const opened = proxies.map(({ url }) => createClient({ url }));
  clients.push(...opened);
  const lock = opened[0]!.getRedLock(...opened.map((client) => client.getLock('red:behind')));
  const [acquire, release] = [scripts.acquire.script!.sha, scripts.release.script!.sha];
  const handOff = scripts.handOff.script!.sha;
  const hold = await inFlow(async () => lock.acquire());
  const waits = inFlow(async () => lock.acquire());
  const listens = ({ log }: FaultProxy): boolean => log.some(({ name }) => name === 'SUBSCRIBE');
  await until(() => proxies.some(listens), 'it stands in line');
  const others = proxies.filter((proxy) => !listens(proxy));
  expect(others).toHaveLength(2);
  const gate = proxies.find(listens)!;
  await parked(gate, opened[proxies.indexOf(gate)]!, 'red:behind');
  await Promise.all(opened.map((client) => client.getLock('red:behind').isLocked()));
  // The client receives no message of the others from here on, and their replies to the release come later.
  const silence = others.map((proxy) => proxy.stall({ kind: 'subscriber', direction: 'to-client' }));
  const held = others.map((proxy) => proxy.holdReply({ sha: release }));
  const released = hold.release();
  const behind = ({ log }: FaultProxy): boolean => {
    const at = log.findLastIndex(({ args }) => args[0] === release);
    return at >= 0 && log.slice(at).some(({ args }) => args[0] === acquire);
  };
  await until(() => others.every(behind), 'the requests to the others are sent');
  // No release has been repeated after an attempt without a reply.
  const releases = ({ log }: FaultProxy): number => log.filter(({ args }) => args[0] === release).length;
  expect(others.map(releases)).toEqual([1, 1]);
  expect(gate.log.filter(({ args }) => args[0] === handOff)).toHaveLength(1);
  for (const fault of [...held, ...silence]) fault.lift();
  await released;
  await (await waits).release();
});

describe('a RedLock of three with one busy server and a slow one', () => {
  /** The first server is busy, and the third one answers late. */
  async function oneSlow(slowMs: number, names: readonly string[]) {
    const proxies = await startProxies();
    const opened = proxies.map(({ url }) => createClient({ url }));
    clients.push(...opened);
    await ready(...opened);
    const { clients: others } = await open();
    const locks = names.map((name) => opened[0]!.getRedLock(...opened.map((client) => client.getLock(name))));
    const busy = await Promise.all(names.map((name) => inFlow(async () => others[0]!.getLock(name).acquire())));
    const slow = proxies[2]!.delay(slowMs, { kind: 'command', direction: 'to-client' });
    const free = async (): Promise<void> => {
      await Promise.all(busy.map((hold) => hold.release()));
      slow.lift();
    };
    return { locks, free };
  }

  test.each([0, 50, 1_500])(
    'is granted to a call that waits for %i ms, also if Redis asks for the script',
    async (waitTime) => {
      const { locks, free } = await oneSlow(150, ['red:slow']);
      for (let i = 0; i < 2; i += 1) {
        await servers[2]!.scriptFlush();
        await inFlow(() => locks[0]!.withLock({ waitTime }, () => undefined));
      }
      await free();
    },
  );

  test('is granted to a call whose time passes before the reply to its first request', async () => {
    const { locks, free } = await oneSlow(300, ['red:slower']);
    await servers[2]!.command('SCRIPT', 'LOAD', scripts.acquire.script!.source);
    await servers[2]!.command('SCRIPT', 'LOAD', scripts.release.script!.source);
    await inFlow(() => locks[0]!.withLock({ waitTime: 150 }, () => undefined));
    await free();
  });

  test('is granted to a try also while another call has found that server slow', async () => {
    const first = 'red:slow:1';
    const { locks, free } = await oneSlow(600, [first, 'red:slow:2']);
    // One reply, and not two, comes within the time of an attempt.
    await servers[2]!.command('SCRIPT', 'LOAD', scripts.acquire.script!.source);
    const log = await servers[1]!.monitor();
    const waits = inFlow(() => locks[0]!.withLock({ waitTime: 20_000 }, () => undefined));
    // The call gives its grant back: it does not wait for the slow server any longer.
    const isBack = (): boolean => log.lines.filter(({ args }) => args.includes(first)).length > 1;
    await until(isBack, 'its first round is over');
    log.stop();
    await inFlow(() => locks[1]!.withLock({ waitTime: 0 }, () => undefined));
    await free();
    await waits;
  });
});

test('R28: two busy of four are a busy RedLock, also while the servers of the other two hang', async () => {
  const { clients: opened, name } = await open({ commandTimeout: 500 });
  const { clients: others } = await open();
  const names = [0, 1, 2, 3].map((at) => `${name}:${at}`);
  const at = (lock: number): number => Math.min(lock, 2); // the third server has two of the locks
  const lock = opened[0]!.getRedLock(...names.map((each, n) => opened[at(n)]!.getLock(each)));
  const kept = await Promise.all([0, 1].map((n) => inFlow(async () => others[n]!.getLock(names[n]!).acquire())));
  await servers[2]!.pause();
  expect(await inFlow(() => lock.tryLock())).toBe(false);
  servers[2]!.resume();
  await Promise.all(kept.map((hold) => hold.release()));
});

test('R28: a call that finds two of three busy stands in line at once while the third hangs', async () => {
  const { lock, name } = await open({ commandTimeout: COMMAND_TIMEOUT_MS });
  const { clients: others } = await open({ name });
  const kept = await Promise.all([0, 1].map((at) => inFlow(async () => others[at]!.getLock(name).acquire())));
  await servers[2]!.pause();
  const began = performance.now();
  const waits = inFlow(async () => lock.acquire({ waitTime: 20_000 }));
  const channels = (): Promise<unknown[][]> => Promise.all([0, 1].map((at) => servers[at]!.channels()));
  await until(async () => (await channels()).flat().length > 0, 'it waits');
  expect(elapsed(began)).toBeLessThan(AT_ONCE_MS);
  servers[2]!.resume();
  await Promise.all(kept.map((hold) => hold.release()));
  await (await waits).release();
});

test('R28: three grants whose lease is shorter than the drift of the clocks grant nothing', async () => {
  const { lock } = await open({ red: { driftFactor: 0.99 } });
  for (const waitTime of [0, 300]) {
    expect(await outcome(inFlow(async () => lock.acquire({ waitTime, leaseTime: 150 })))).toBe('ERR_LOCK_NO_QUORUM');
  }
});

describe('R28: a server that refuses a user without permission', () => {
  const refuse = (...all: RedisServer[]): Promise<unknown> =>
    Promise.all(all.map((server) => server.command('ACL', 'SETUSER', 'default', '-@scripting')));
  afterEach(() => Promise.all(servers.map((server) => server.command('ACL', 'SETUSER', 'default', '+@all'))));

  test.each([0, 1, 2])('R28: one of three (%i) neither prevents nor delays the lock', async (at) => {
    const { lock, ...red } = await open({ commandTimeout: COMMAND_TIMEOUT_MS });
    await lock.withLock(() => undefined);
    await freeEverywhere(red);
    await refuse(servers[at]!);
    for (let round = 0; round < 3; round += 1) {
      const entered = await timed(lock.acquire());
      expect(entered.ms).toBeLessThan(AT_ONCE_MS);
      const held = await holders(red.name);
      expect(held).toEqual([0, 1, 2].map((server) => (server === at ? 0 : 1)));
      expect((await timed(entered.value.release())).ms).toBeLessThan(AT_ONCE_MS);
    }
  });

  test('R28: two of three: NoQuorumError at once with the result of each server, and nothing stays held', async () => {
    const { lock, ...red } = await open({ commandTimeout: COMMAND_TIMEOUT_MS });
    await lock.withLock(() => undefined);
    await freeEverywhere(red);
    await refuse(servers[0]!, servers[2]!);
    for (const call of [() => lock.tryLock(), () => lock.lock(), () => lock.tryLock(300)]) {
      const { value: error, ms } = await timed(
        inFlow(() =>
          call().then(
            () => undefined,
            (reason: unknown) => reason,
          ),
        ),
      );
      expect(ms).toBeLessThan(300 + AT_ONCE_MS);
      expect(error).toMatchObject({ code: 'ERR_LOCK_NO_QUORUM', quorum: 2 });
      const { results } = error as NoQuorumError;
      for (const at of [0, 2])
        expect(results[at]).toMatchObject({ server: at, outcome: 'failed', error: { code: 'ERR_LOCK_REFUSED' } });
      await until(async () => (await holders(red.name)).every((held) => held === 0), 'nothing is kept');
    }
  });

  test.each([0, 1, 2])('R28: two of three: each result is reported while the other (%i) replies late', async (at) => {
    const proxies = await startProxies();
    const opened = proxies.map(({ url }) => createClient({ url, commandTimeout: COMMAND_TIMEOUT_MS }));
    clients.push(...opened);
    const name = 'red:late';
    const lock = opened[0]!.getRedLock(...opened.map((client) => client.getLock(name)));
    await lock.withLock(() => undefined);
    await freeEverywhere({ clients: opened, name });
    await refuse(...servers.filter((_, server) => server !== at));
    // The others have decided each round by then, so the next round does not know of its grant.
    proxies[at]!.delay(40, { direction: 'to-client' });
    for (const waitTime of [0, 100, 300]) {
      const error: unknown = await inFlow(async () => lock.tryLock(waitTime).catch((reason: unknown) => reason));
      expect(error).toMatchObject({ code: 'ERR_LOCK_NO_QUORUM' });
      const { results } = error as NoQuorumError;
      const refused = results.filter((_, server) => server !== at);
      expect(refused).toMatchObject([{ error: { code: 'ERR_LOCK_REFUSED' } }, { error: { code: 'ERR_LOCK_REFUSED' } }]);
    }
  });

  test('R23: an abort ends a wait between two rounds at once', async () => {
    const { lock, ...red } = await open();
    await lock.withLock(() => undefined);
    await freeEverywhere(red);
    await refuse(servers[0]!, servers[2]!);
    const log = await servers[1]!.monitor();
    const controller = new AbortController();
    const { signal } = controller;
    const waits = outcome(inFlow(async () => lock.acquire({ waitTime: 20_000, signal })));
    // Each round acquires and releases there. The pause after the first round is 100 ms, and then twice as long.
    const asked = (): number =>
      log.lines.filter(({ args, source }) => source !== 'lua' && args.includes(red.name)).length;
    await until(() => asked() >= 10, 'five rounds have ended');
    controller.abort();
    const began = performance.now();
    expect(await waits).toBe('ERR_LOCK_ABORTED');
    expect(elapsed(began)).toBeLessThan(1_000); // of a pause of 1,600
    log.stop();
  });
});
