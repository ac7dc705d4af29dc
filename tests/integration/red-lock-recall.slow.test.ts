import { expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import type { ClientOptions } from '../../src/options.js';
import type { RedLock } from '../../src/several/red-lock.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { answered, inFlow, outcome, pause } from '../support/clients/lock-clients.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { until } from '../support/time/until.js';
import { clients, freeEverywhere, open, servers, startProxies, timed } from './red-lock-stage.js';

/* A hold that is given back while the third server's grant is still on its way: that one is held up by its proxy. */

const ACQUIRE = { command: 'EVALSHA', sha: scripts.acquire.script!.sha };
const RELEASE = { command: 'EVALSHA', sha: scripts.release.script!.sha };

interface Stage {
  readonly lock: RedLock;
  readonly name: string;
  readonly clients: readonly LockClient[];
  readonly proxies: readonly FaultProxy[];
}

async function stage(name: string, options: ClientOptions = {}): Promise<Stage> {
  const proxies = await startProxies();
  const opened = proxies.map(({ url }) => createClient({ url, ...options }));
  clients.push(...opened);
  const lock = opened[0]!.getRedLock(...opened.map((client) => client.getLock(name)));
  const red = { lock, name, clients: opened };
  // Every script is known from here on, and every server has answered.
  await lock.withLock(() => undefined);
  await freeEverywhere(red);
  return { ...red, proxies };
}

/** Two have granted it; what the third says to it is on its way. */
async function heldByTwo({ lock, proxies }: Stage) {
  const last = proxies[2]!;
  const before = scriptsSeen(last).length;
  const held = last.holdReply({ ...ACQUIRE, times: Infinity });
  const hold = await inFlow(async () => lock.acquire());
  return { last, before, held, hold };
}

const scriptsSeen = ({ log }: FaultProxy): string[] =>
  log.flatMap(({ name, args }) => (name === 'EVALSHA' ? [args[0] as string] : []));

test('what is still being granted goes back right behind its request, and with nothing else', async () => {
  const red = await stage('red:recalled');
  const { last, before, held, hold } = await heldByTwo(red);
  await hold.release();
  await until(() => scriptsSeen(last).length === before + 2, 'both requests have come');
  await until(async () => (await servers[2]!.command('EXISTS', red.name)) === 0, 'it is free there');
  expect(held.count).toBe(1);
  held.lift();
  await freeEverywhere(red);
  expect(scriptsSeen(last).slice(before)).toEqual([ACQUIRE.sha, RELEASE.sha]);
});

test('it counts for the majority that has given its part back', async () => {
  const red = await stage('red:counted');
  const { last, before, held, hold } = await heldByTwo(red);
  const released = red.proxies[1]!.holdReply({ ...RELEASE, times: Infinity });
  const giving = outcome(hold.release());
  await until(() => scriptsSeen(last).length === before + 2, 'both requests have come');
  held.lift();
  expect(await giving).toBe('ok');
  expect(released.count).toBeGreaterThan(0);
  released.lift();
  await freeEverywhere(red);
});

test('it frees nobody else, where the answer is that somebody has it', async () => {
  const red = await stage('red:others');
  const other = await open();
  const theirs = await inFlow(() => other.clients[2]!.getLock(red.name).acquire());
  const { last, before, held, hold } = await heldByTwo(red);
  await hold.release();
  await until(async () => (await servers[0]!.command('EXISTS', red.name)) === 0, 'it is free at the first');
  held.lift();
  await until(() => scriptsSeen(last).slice(before).includes(RELEASE.sha), 'the release has come');
  expect(await servers[2]!.command('HKEYS', red.name)).toEqual([theirs.owner]);
  await theirs.release();
  await freeEverywhere(red);
});

test('R10: it stands for no part that was lost, which nobody had noticed', async () => {
  const red = await stage('red:lost-unnoticed');
  const { held, hold } = await heldByTwo(red);
  await servers[0]!.command('DEL', red.name);
  const giving = outcome(hold.release());
  // Behind their releases; the third is given back after it is known that the first has nothing.
  await Promise.all([0, 1].map((at) => answered(red.clients[at]!)));
  held.lift();
  expect(await giving).toBe('ERR_LOCK_LOST');
  await freeEverywhere(red);
});

test('R3: the release of a hold that is known to be lost does not wait for it', async () => {
  const red = await stage('red:lost-noticed');
  const { held, hold } = await heldByTwo(red);
  await red.clients[0]!.getLock(red.name).forceUnlock();
  expect(hold.signal.aborted).toBe(true);
  const { value, ms } = await timed(outcome(hold.release()));
  expect(value).toBe('ERR_LOCK_LOST');
  expect(ms).toBeLessThan(500); // of a command deadline of 3,000
  held.lift();
  await freeEverywhere(red);
});

test.each(['swallow', 'cutBefore', 'cutAfter'] as const)(
  'R1: what it took is given back all the same where its release is lost: %s',
  async (loss) => {
    const red = await stage(`red:lost-${loss}`);
    const { last, held, hold } = await heldByTwo(red);
    const lost = last[loss](RELEASE);
    await hold.release();
    await lost.applied;
    held.lift();
    await freeEverywhere(red);
    expect(lost.count).toBe(1);
  },
);

test('R1: and where no release comes through for a whole command deadline', async () => {
  const red = await stage('red:unreleased', { commandTimeout: 600 });
  const { last, held, hold } = await heldByTwo(red);
  const refused = last.answer({ ...RELEASE, times: Infinity }, '-LOADING Redis is loading the dataset in memory\r\n');
  await hold.release();
  await refused.applied;
  held.lift();
  await pause(800);
  // The recall has failed: what was granted has to be given back by another request.
  expect(await servers[2]!.command('EXISTS', red.name)).toBe(1);
  refused.lift();
  await freeEverywhere(red);
});
