import { expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import type { ClientOptions } from '../../src/options.js';
import type { RedLock } from '../../src/several/red-lock.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { answered, inFlow, outcome, pause } from '../support/clients/lock-clients.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { clients, freeEverywhere, open, servers, startProxies, timed } from './red-lock-stage.js';

/* A hold that is released while the grant of the third server is pending: the proxy of that server holds the reply. */

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

/** Two servers have granted the lock. The third has executed the script, and the proxy holds its reply. */
async function heldByTwo({ lock, proxies }: Stage) {
  const last = proxies[2]!;
  const before = scriptsSeen(last).length;
  const held = last.holdReply({ ...ACQUIRE, times: Infinity });
  const hold = await inFlow(async () => lock.acquire());
  // Two grants settle the call: without this wait the release could come before the third server has the script.
  await held.executed;
  return { last, before, held, hold };
}

const scriptsSeen = ({ log }: FaultProxy): string[] =>
  log.flatMap(({ name, args }) => (name === 'EVALSHA' ? [args[0] as string] : []));

test('R1: a grant that comes after the release is released', async () => {
  const red = await stage('red:late');
  const { last, before, held, hold } = await heldByTwo(red);
  await hold.release();
  expect(held.count).toBe(1);
  held.lift();
  await freeEverywhere(red);
  expect(scriptsSeen(last).slice(before)).toEqual([ACQUIRE.sha, RELEASE.sha]);
});

test('a pending reply of "busy" leaves the server to the owner that holds it', async () => {
  const red = await stage('red:others');
  const other = await open();
  const theirs = await inFlow(() => other.clients[2]!.getLock(red.name).acquire());
  const { held, hold } = await heldByTwo(red);
  await hold.release();
  held.lift();
  await Promise.all(red.clients.map(answered));
  expect(await servers[2]!.command('HKEYS', red.name)).toEqual([theirs.owner]);
  await theirs.release();
  await freeEverywhere(red);
});

test('R10: a late grant does not replace a part that was lost unnoticed', async () => {
  const red = await stage('red:lost-unnoticed');
  const { held, hold } = await heldByTwo(red);
  await servers[0]!.command('DEL', red.name);
  const giving = outcome(hold.release());
  // The third grant comes after the first server has answered that the hold is gone.
  await Promise.all([0, 1].map((at) => answered(red.clients[at]!)));
  held.lift();
  expect(await giving).toBe('ERR_LOCK_LOST');
  await freeEverywhere(red);
});

test('R3: the release of a lost hold does not wait for the pending grant', async () => {
  const red = await stage('red:lost-noticed');
  const { held, hold } = await heldByTwo(red);
  await red.clients[0]!.getLock(red.name).forceUnlock();
  expect(hold.signal.aborted).toBe(true);
  const { value, ms } = await timed(outcome(hold.release()));
  expect(value).toBe('ERR_LOCK_LOST');
  expect(ms).toBeLessThan(2_000); // of a command deadline of 3,000
  held.lift();
  await freeEverywhere(red);
});

test.each(['swallow', 'cutBefore', 'cutAfter'] as const)(
  'R1: a late grant is released even if its first release is lost: %s',
  async (loss) => {
    const red = await stage(`red:lost-${loss}`);
    const { last, held, hold } = await heldByTwo(red);
    const lost = last[loss](RELEASE);
    await hold.release();
    held.lift();
    await lost.applied;
    await freeEverywhere(red);
    expect(lost.count).toBe(1);
  },
);

test('R1: a late grant is released even if the server refuses each release for a whole command deadline', async () => {
  const red = await stage('red:unreleased', { commandTimeout: 600 });
  const { last, held, hold } = await heldByTwo(red);
  const refused = last.answer({ ...RELEASE, times: Infinity }, '-LOADING Redis is loading the dataset in memory\r\n');
  await hold.release();
  held.lift();
  await refused.applied;
  await pause(800);
  // The first release has failed: a later one has to release the grant.
  expect(await servers[2]!.command('EXISTS', red.name)).toBe(1);
  refused.lift();
  await freeEverywhere(red);
});
