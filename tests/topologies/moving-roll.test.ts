import { expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import type { LockClient } from '../../src/client/create-client.js';
import { wiringOf } from '../../src/client/wiring-of.js';
import type { Lock } from '../../src/locks/lock.js';
import { keySlot } from '../../src/redis/cluster-slots.js';
import { rollKey, tokenKey } from '../../src/redis/keys.js';
import { leave, wake } from '../../src/redis/scripts/lock.js';
import type { SlotMove } from '../support/servers/cluster.js';
import { ClusterClients } from '../support/clients/cluster-clients.js';
import { inFlow } from '../support/clients/lock-clients.js';
import { serverMajor } from '../support/servers/server-version.js';
import { until } from '../support/time/until.js';

/* While a slot moves, a lock and the roll of its parked clients may be at two nodes. */

const bench = new ClusterClients();

/** The slot of `name` is on its way, and the chosen keys have arrived. */
async function splitSlot(name: string, isChosen: (key: string) => boolean): Promise<SlotMove> {
  const { master } = await bench.cluster.shardOf(name);
  const move = await bench.cluster.beginMove(keySlot(name), await bench.otherMaster(master));
  await move.moveKeys(isChosen);
  return move;
}

const STATION = '00000000-0000-8000-8000-00000000000a';
const MOVED: [string, (name: string) => string[]][] = [
  ['nothing', () => []],
  ['the lock', (name) => [name]],
  ['the roll', (name) => [rollKey(name)]],
  ['both keys', (name) => [name, rollKey(name)]],
];
const RELEASES: Record<string, (client: LockClient, name: string) => Promise<() => Promise<unknown>>> = {
  plain: async (client, name) => releasing(await client.getLock(name).acquire()),
  fenced: async (client, name) => releasing(await client.getFencedLock(name).acquire()),
  spin: async (client, name) => releasing(await client.getSpinLock(name).acquire()),
  'end of a streak': (client, name) => streak(client, client.getLock(name)),
};
/** The first waiting call gets the lock by a hand-over, which frees the lock instead of passing it on to the second one. */
const streak = async (client: LockClient, lock: Lock): Promise<() => Promise<unknown>> => {
  const hold = await lock.acquire();
  const section = (): Promise<void> => lock.withLock(() => undefined);
  const next = [inFlow(section), inFlow(section)];
  await until(() => client.stats().waits === 2, 'two calls wait');
  return () => Promise.all([hold.release(), ...next]);
};
const releasing = (hold: { release(): Promise<void> }) => () => hold.release();

/** A message of a script that runs at the node that imports the slot reaches no subscriber of the other node. */
const KINDS = MOVED.flatMap(([what, moved]) =>
  [false, ...(serverMajor() >= 7 && !/roll|both/.test(what) ? [true] : [])].map(
    (sharded) => [what, sharded ? 'sharded' : 'classic', moved] as const,
  ),
);

test.each(KINDS)(
  'whatever frees a lock tells a parked client when a migrating slot has moved %s, with %s messages',
  async (_what, messages, moved) => {
    const isSharded = messages === 'sharded';
    const client = await bench.open({ shardedSubscriptions: isSharded, handOff: { maxSections: 1 } });
    // No client parks yet: the client is told the rolls, and the test parks a station.
    const ownOf = (name: string): string => `holdfast_wake:${name}:`;
    Object.assign(wiringOf(client)!.port, { rollOf: (key: string) => [rollKey(key), ownOf(key)] });
    // The names share a slot.
    const tag = `{${bench.freshName('roll')}}`;
    const names = Object.keys(RELEASES).map((kind) => `${tag}:${kind}`);
    const { master } = await bench.cluster.shardOf(tag);
    const parked = new Redis(master.url);
    const heard: string[] = [];
    for (const event of ['message', 'smessage']) parked.on(event, (_: string, payload: string) => heard.push(payload));
    const frees: (() => Promise<unknown>)[] = [];
    for (const [at, hold] of Object.values(RELEASES).entries()) {
      const name = names[at]!;
      if (isSharded) await parked.ssubscribe(ownOf(name) + STATION);
      else await parked.subscribe(ownOf(name) + STATION);
      frees.push(await inFlow(() => hold(client, name)));
      // The oldest client does not listen, so the script finds nobody where the roll is empty after it.
      for (const [since, station] of [STATION.replace('a', 'b'), STATION].entries())
        await master.command('ZADD', rollKey(name), since, station);
    }
    const move = await splitSlot(tag, (key) => names.some((name) => moved(name).includes(key)));
    for (const [at, free] of frees.entries()) {
      await inFlow(free);
      // A message of the new node is not counted: it may have been the one to stand by, and the client left the roll.
      const told = (payload: string): boolean =>
        payload.endsWith(` ${STATION} ${rollKey(names[at]!)}`) && (!isSharded || payload.startsWith('1'));
      await until(() => heard.some(told), 'it is told');
    }
    await wiringOf(client)!.executor.rolls.whenDone();
    await move.finish();
    const left = await Promise.all([move.from, move.to].map((server) => bench.cluster.keysOn(server)));
    expect(left.flat().filter((key) => !key.startsWith('redisson_lock_token:'))).toEqual([]);
    parked.disconnect();
    await move.to.command('DEL', ...names.map(tokenKey));
  },
  60_000,
);

test.each([
  ['lock/wake', wake, ['PUBLISH', 'holdfast_wake:', 1]],
  ['lock/leave', leave, ['PUBLISH', 'holdfast_wake:', STATION, 1, 0]],
] as const)(
  '%s replies -2 at the old node if only clients are in the roll that do not listen',
  async (_, script, words) => {
    const name = bench.freshName('roll');
    const { master } = await bench.cluster.shardOf(name);
    await master.command('HSET', name, 'a', 1);
    await master.command('ZADD', rollKey(name), 1, STATION.replace('a', 'b'));
    const move = await splitSlot(name, (key) => key === name);
    expect(await master.command('EVAL', script.script!.source, 1, rollKey(name), name, ...words)).toBe(-2);
    expect(await bench.cluster.keysOn(move.from)).toEqual([]);
    await move.finish();
    await move.to.command('DEL', name);
  },
  60_000,
);
