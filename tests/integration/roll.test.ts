import { afterEach, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import { wiringOf } from '../../src/client/wiring-of.js';
import { rollKey } from '../../src/redis/keys.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { OWN, Roll } from '../lua/roll.js';
import {
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
  outcome,
  pause,
} from '../support/clients/lock-clients.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { admin, freshName } from '../support/redis.js';
import { startServer } from '../support/servers/servers.js';
import { allChannels } from '../support/servers/server-version.js';
import { QUIET_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

/*
 * The scripts that free a lock wake the clients that are parked in its roll. No kind of lock parks its clients yet, so
 * here the test parks them, and tells the client which rolls there are.
 */

const RELEASE = scripts.release.script!.sha;
const WAKE = scripts.wake.script!.sha;

const rolls: Roll[] = [];
afterEach(async () => {
  await closeClients();
  for (const roll of rolls.splice(0)) await roll.close();
});

function newRoll(name: string): Roll {
  const roll = new Roll(name);
  rolls.push(roll);
  return roll;
}

/** A client whose scripts read the rolls. */
async function open(
  options: Parameters<typeof openClient>[0] = {},
): Promise<{ client: LockClient; proxy: FaultProxy }> {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, ...options });
  Object.assign(wiringOf(client)!.port, { rollOf: (key: string) => [rollKey(key), OWN] });
  return { client, proxy };
}

/** Requests about the roll of this lock; another file may have flushed the scripts, so that one is sent as EVAL, too. */
const wakesSent = ({ log }: FaultProxy, name: string): number =>
  log.filter(({ args }) => args[0] === WAKE && args.includes(rollKey(name))).length;

interface Way {
  /** Frees one lock of that name. */
  frees(client: LockClient, name: string, proxy: FaultProxy): Promise<unknown>;
  /** What the clients a, b and c are told; the first one if it is woken once, and the next one stands by. */
  readonly told?: string;
  /** It sends a request to wake even if it could read the roll. */
  readonly inDoubt?: true;
}

const WAYS: Record<string, Way> = {
  'a release': { frees: (client, name) => client.getLock(name).withLock(() => undefined) },
  'a release of a non-reentrant lock': {
    frees: (client, name) => client.getNonReentrantLock(name).withLock(() => undefined),
  },
  'a release of a fenced lock': { frees: (client, name) => client.getFencedLock(name).withLock(() => undefined) },
  'a release of a spin lock': { frees: (client, name) => client.getSpinLock(name).withLock(() => undefined) },
  'a release in the background': {
    frees: (client, name) => client.getLock(name).withLock({ release: 'background' }, () => undefined),
  },
  'a forced unlock of the lock': {
    async frees(client, name) {
      await holdElsewhere(client.getLock(name));
      await client.getLock(name).forceUnlock();
    },
  },
  'a forced unlock of an owner': {
    async frees(client, name) {
      const { owner } = await holdElsewhere(client.getLock(name));
      expect(await client.forceUnlock(name, { ifOwner: owner })).toBe(true);
    },
  },
  'the release of a call that failed': {
    async frees(client, name, proxy) {
      const lost = proxy.cutAfter({ sha: scripts.acquire.script!.sha, times: Infinity });
      expect(await outcome(inFlow(() => client.getLock(name).tryLock()))).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
      lost.lift();
    },
  },
  'close({ releaseHolds })': {
    async frees(client, name) {
      await holdElsewhere(client.getLock(name));
      await client.close({ releaseHolds: true });
    },
  },
  'the end of a streak': {
    async frees(client, name) {
      const hold = await holdElsewhere(client.getLock(name));
      const section = (): Promise<void> => client.getLock(name).withLock(() => undefined);
      const next = [inFlow(section), inFlow(section)];
      await until(() => client.stats().waits === 2, 'two calls wait');
      await hold.release();
      await Promise.all(next);
    },
    // The first call gets the lock by a hand-over, which frees the lock instead of passing it on to the second one.
    told: '1a 2b 1b 2c',
  },
  'a release whose reply was lost': {
    async frees(client, name, proxy) {
      await client.getLock(name).withLock(() => void proxy.cutAfter({ sha: RELEASE }));
    },
    // The repeat cannot know whether the first attempt has read the roll.
    told: '1a 2b 1b 2c',
    inDoubt: true,
  },
};

const freed = (name: string): Promise<void> =>
  until(async () => (await admin().exists(name)) === 0, 'the lock is free');

test.each(Object.entries(WAYS))('%s wakes the oldest parked client', async (_, { frees, told = '1a 2b', inDoubt }) => {
  const { client, proxy } = await open({ commandTimeout: 600, handOff: { maxSections: 1 } });
  const name = freshName();
  const roll = newRoll(name);
  await roll.park('abc');
  await frees(client, name, proxy);
  await freed(name);
  let all = '';
  await until(async () => (all = `${all} ${await roll.told()}`.trim()).length >= told.length, 'all are told');
  expect(all).toBe(told);
  expect(wakesSent(proxy, name) > 0).toBe(inDoubt === true);
});

test.each(Object.entries(WAYS))('%s that cannot read the roll sends a request to wake', async (_, { frees }) => {
  const { client, proxy } = await open({ commandTimeout: 600, handOff: { maxSections: 1 } });
  const name = freshName();
  await admin().set(rollKey(name), 'not a roll');
  await frees(client, name, proxy);
  await freed(name);
  await until(() => wakesSent(proxy, name) > 0, 'the request is sent');
  await admin().del(rollKey(name));
});

test('a call that releases what it no longer has sends a request to wake', async () => {
  const { client, proxy } = await open();
  const name = freshName();
  const roll = newRoll(name);
  const hold = await holdElsewhere(client.getLock(name));
  await admin().del(name);
  await roll.park('ab');
  expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
  await until(() => wakesSent(proxy, name) > 0, 'the request is sent');
  await until(async () => (await roll.told()) === '1a 2b', 'a is woken');
});

/** Sections that cannot read the roll send a request to wake until the reply to the first one is there. */
async function expectRemembered(client: LockClient, proxy: FaultProxy, name: string): Promise<void> {
  const section = (): Promise<void> => client.getLock(name).withLock(() => undefined);
  await section();
  await wiringOf(client)!.executor.rolls.whenDone();
  const sent = wakesSent(proxy, name);
  expect(sent).toBeGreaterThan(0);
  for (let at = 0; at < 5; at += 1) await section();
  expect(wakesSent(proxy, name)).toBe(sent);
}

test('a client that Redis refuses a roll sends no further request about it, and those about another roll', async () => {
  const { client, proxy } = await open();
  const names = [freshName(), freshName()];
  for (const name of names) {
    await admin().set(rollKey(name), 'not a roll');
    await expectRemembered(client, proxy, name);
    await admin().del(rollKey(name));
  }
});

test('a client that Redis refuses the keys of the rolls sends no further request about them', async () => {
  const name = freshName();
  const user = name.replaceAll(/\W/g, '-');
  const channels = [allChannels()].filter(Boolean);
  await admin().acl('SETUSER', user, 'on', '>secret', `~${name}`, ...channels, '+@all');
  const { proxy, url } = await openProxy();
  const client = await openClient({ url: Object.assign(new URL(url), { username: user, password: 'secret' }).href });
  Object.assign(wiringOf(client)!.port, { rollOf: (key: string) => [rollKey(key), OWN] });
  await expectRemembered(client, proxy, name);
  await closeClients();
  await admin().acl('DELUSER', user);
});

test('close() waits until a request to wake is answered', async () => {
  const { client, proxy } = await open();
  const name = freshName();
  const roll = newRoll(name);
  await roll.park('ab');
  await client.getLock(name).acquire();
  proxy.cutAfter({ sha: RELEASE });
  const held = proxy.holdCommand({ sha: WAKE });
  let isClosed = false;
  const closing = client.close({ releaseHolds: true }).then(() => (isClosed = true));
  await held.applied;
  await pause(QUIET_MS);
  expect(isClosed).toBe(false);
  held.lift();
  await closing;
  expect(await roll.told()).toBe('1a 2b 1b');
});

test('at maxmemory a lock is acquired, refused and released, and nobody is parked', async () => {
  const server = await startServer();
  const run = (script: { source: string } | undefined, ...words: (string | number)[]): Promise<unknown> =>
    server.command('EVAL', script!.source, 1, 'lock', ...words);
  const station = '00000000-0000-8000-8000-00000000000a';
  await server.command('HSET', 'lock', `${station}:1`, 1);
  await server.command('PEXPIRE', 'lock', 60_000);
  await server.command('CONFIG', 'SET', 'maxmemory', 1);
  const roll = rollKey('lock');
  expect(await run(scripts.acquire.script, `${station}:2`, 30_000, roll, station, 1, 0, 0)).toEqual([
    expect.any(Number),
    0,
    -1,
  ]);
  const words = ['PUBLISH', 'channel', -1, roll, OWN, 1, '', 0, `${station}:1`];
  expect(await run(scripts.release.script, ...words)).toBe(1);
  await server.stop();
});

test('a section sends two requests, with parked clients and without', async () => {
  const { client, proxy } = await open();
  const name = freshName();
  const roll = newRoll(name);
  const section = (): Promise<void> => client.getLock(name).withLock(() => undefined);
  await section();
  for (const letters of ['', 'ab']) {
    await roll.park(letters);
    const before = proxy.log.length;
    await section();
    expect(proxy.log.slice(before).map(({ name: command }) => command)).toEqual(['EVALSHA', 'EVALSHA']);
  }
});

test('no client of this version parks: the rolls are left alone', async () => {
  const client = await openClient();
  const name = freshName();
  const roll = newRoll(name);
  await roll.park('ab');
  const hold = await holdElsewhere(client.getLock(name));
  const next = inFlow(() => client.getLock(name).withLock(() => undefined));
  await until(() => client.stats().waits === 1, 'a call waits');
  await hold.release();
  await next;
  expect(await roll.told()).toBe('');
  expect(await roll.parked()).toBe('ab');
});
