import { expect, test } from '@jest/globals';
import {
  acquire,
  acquireNested,
  handOff,
  leave,
  release,
  releasePartial,
  renew,
  wake,
} from '../../src/redis/scripts/lock.js';
import type { Redis } from 'ioredis';
import { lockChannel, rollKey, tokenKey } from '../../src/redis/keys.js';
import * as fenced from '../../src/redis/scripts/fenced-lock.js';
import * as spin from '../../src/redis/scripts/spin-lock.js';
import { projectFiles } from '../support/project/project-files.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { MonitorLog } from '../support/servers/monitor-log.js';
import { allChannels, serverMajor } from '../support/servers/server-version.js';
import { OWN, wakingProperties, withRoll, type Roll } from './roll.js';
import { between, describeScript, heldBy, type ScriptBench } from './script-bench.js';

const JVM = '8743c9c0-0795-4907-87fd-6c719a6b4586:52';
/** The arguments of a try that does not park its client, and those of a release and a hand-over without a roll. */
const UNPARKED = ['', '', 0, 0] as const;
const NO_ROLL = ['', '', 1, '', 0] as const;
const HUGE = Number.MAX_SAFE_INTEGER;
/** Redis before 7 has no sharded channels: nothing can be seen of them there. */
const sharding = (property: (bench: ScriptBench) => Promise<void>): ((bench: ScriptBench) => Promise<void>) =>
  serverMajor() >= 7 ? property : () => Promise.resolve();

/** Writes a held lock: `fields` by owner. */
async function given({ name }: ScriptBench, fields: Record<string, string>, leaseMs = 60_000): Promise<void> {
  await admin().hset(name, fields);
  if (leaseMs > 0) await admin().pexpire(name, leaseMs);
}

/** A try that parks its client if the lock is busy. */
function look(
  { name }: ScriptBench,
  roll: Roll,
  letter: string,
  { since = 1_000, registered = 0, by = admin() } = {},
): Promise<unknown> {
  const station = roll.station(letter);
  const words = [`${station}:1`, 30_000, roll.key, station, since, registered, 0];
  return by.eval(acquire.script!.source, 1, name, ...words);
}

/** The commands that scripts run for these keys during an action. Other tests use the same server. */
async function commandsFor(keys: readonly string[], action: () => Promise<unknown>): Promise<string[]> {
  const { hostname: host, port } = new URL(testRedisUrl());
  const mark = (marker: string): Promise<unknown> => admin().echo(marker);
  const monitor = await MonitorLog.open({ host, port: Number(port) }, [['MONITOR']], mark, () => undefined);
  try {
    await action();
    const lines = await monitor.settle();
    return lines
      .filter(({ source, args: [key = ''] }) => source === 'lua' && keys.includes(key))
      .map((line) => line.command);
  } finally {
    monitor.stop();
  }
}

/** Too late by the server's clock: the answer says so and nothing is different, whatever would have been done. */
function tooLate(
  args: (notAfter: number, channel: string) => (string | number)[],
): (bench: ScriptBench) => Promise<void> {
  return async (bench) => {
    for (const fields of [undefined, { a: '1' }, { b: '2' }]) {
      await admin().del(bench.name);
      if (fields) await given(bench, fields);
      const late = await bench.notAfter(-1);
      expect(await bench.run([bench.name], ...args(late, bench.channel))).toBe(-3);
      expect(await bench.state()).toEqual(fields ? { [bench.name]: { ...heldBy('', 0, 60_000), value: fields } } : {});
      expect(await bench.published()).toEqual([]);
    }
  };
}

describeScript(acquire, {
  nil: {
    'a free lock is acquired with hold count 1 for the lease': async ({ run, name, state, published, notAfter }) => {
      expect(await run([name], 'a', 30_000, ...UNPARKED, await notAfter(5_000))).toBeNull();
      expect(await state()).toEqual({ [name]: heldBy('a', 1, 30_000) });
      expect(await published()).toEqual([]);
    },
    'a not-after of 0 is no limit': async ({ run, name, state }) => {
      expect(await run([name], 'a', 30_000, ...UNPARKED, 0)).toBeNull();
      expect(await state()).toEqual({ [name]: heldBy('a', 1, 30_000) });
    },
    'a client that was parked leaves the roll': withRoll(async (roll, bench) => {
      await roll.park('ab');
      expect(await look(bench, roll, 'a', { registered: 1 })).toBeNull();
      expect(await roll.parked()).toBe('b');
      await admin().del(bench.name);
      expect(await look(bench, roll, 'b')).toBeNull();
      expect(await roll.parked()).toBe('b');
      await admin().del(bench.name, roll.key);
      await admin().set(roll.key, 'not a roll');
      expect(await look(bench, roll, 'b', { registered: 1 })).toBeNull();
      await admin().del(bench.name);
    }),
    'the largest lease is accepted': async ({ run, name, state }) => {
      expect(await run([name], 'a', HUGE, ...UNPARKED, 0)).toBeNull();
      expect(await state()).toEqual({ [name]: heldBy('a', 1, HUGE) });
    },
    'a repeat keeps the count of 1 and never shortens the lease': async (bench) => {
      const { run, name, state } = bench;
      await given(bench, { a: '1' });
      expect(await run([name], 'a', 30_000, ...UNPARKED, 0)).toBeNull();
      expect(await state()).toEqual({ [name]: heldBy('a', 1, 60_000) });
    },
    'a repeat with a longer lease extends the lease': async (bench) => {
      const { run, name, state } = bench;
      await given(bench, { a: '1' }, 10_000);
      expect(await run([name], 'a', 30_000, ...UNPARKED, 0)).toBeNull();
      expect(await state()).toEqual({ [name]: heldBy('a', 1, 30_000) });
    },
    'a copy after a nested acquire keeps the count': async (bench) => {
      const { run, name, state } = bench;
      await given(bench, { a: '2' });
      expect(await run([name], 'a', 30_000, ...UNPARKED, 0)).toBeNull();
      expect(await state()).toEqual({ [name]: heldBy('a', 2, 60_000) });
    },
  },
  n: {
    "another owner's lock is not changed, and its lease is returned": async (bench) => {
      const { run, name, state, published } = bench;
      await given(bench, { b: '2' });
      expect(await run([name], 'a', 90_000, ...UNPARKED, 0)).toEqual(between(59_000, 60_000));
      expect(await state()).toEqual({ [name]: heldBy('b', 2, 60_000) });
      expect(await published()).toEqual([]);
    },
    "another owner's lock without expiry replies -1": async (bench) => {
      const { run, name, state } = bench;
      await given(bench, { [JVM]: '1' }, -1);
      expect(await run([name], 'a', 90_000, ...UNPARKED, 0)).toBe(-1);
      expect(await state()).toEqual({ [name]: heldBy(JVM, 1, -1) });
    },
  },
  'an array': {
    'the client is parked, and learns its place': withRoll(async (roll, bench) => {
      await given(bench, { [`${roll.station('h')}:1`]: '1' });
      for (const [at, letter] of ['a', 'b'].entries())
        expect(await look(bench, roll, letter, { since: 1_000 + at })).toEqual([between(59_000, 60_000), 0, at]);
      expect(await roll.parked()).toBe('ab');
      await roll.expectFresh();
      expect(await bench.published()).toEqual([]);
    }),
    'a client that comes back keeps its place': withRoll(async (roll, bench) => {
      await given(bench, { [`${roll.station('h')}:1`]: '1' });
      await roll.park('b');
      expect(await look(bench, roll, 'a', { since: 500 })).toEqual([between(59_000, 60_000), 0, 0]);
      expect(await look(bench, roll, 'a', { since: 2_000, registered: 1 })).toEqual([between(59_000, 60_000), 0, 0]);
      expect(await admin().zscore(roll.key, roll.station('a'))).toBe('500');
    }),
    'an owner whose client id is not of version 8 is foreign': withRoll(async (roll, bench) => {
      await given(bench, { [JVM]: '1' });
      expect(await look(bench, roll, 'a')).toEqual([between(59_000, 60_000), 1, 0]);
      await admin().del(bench.name);
      await given(bench, { mode: 'read', [`${roll.station('h')}:1`]: '1' });
      expect(await look(bench, roll, 'a')).toEqual([between(59_000, 60_000), 0, 0]);
      await given(bench, { [JVM]: '1' });
      expect(await look(bench, roll, 'a')).toEqual([between(59_000, 60_000), 1, 0]);
    }),
    'more than 100 owners are taken to be foreign': withRoll(async (roll, bench) => {
      const owners = Array.from({ length: 101 }, (_, at) => [`${roll.station('h')}:${at}`, '1'] as const);
      await given(bench, Object.fromEntries(owners.slice(1)));
      expect(await look(bench, roll, 'a')).toEqual([between(59_000, 60_000), 0, 0]);
      await given(bench, Object.fromEntries(owners));
      expect(await look(bench, roll, 'a')).toEqual([between(59_000, 60_000), 1, 0]);
    }),
    'Redis refuses the roll: the client has no place': withRoll(async (roll, bench) => {
      await given(bench, { [JVM]: '1' });
      for (const rule of ['-zadd', '-zrank', '-pexpire']) {
        const by = await roll.refused(rule);
        expect(await look(bench, roll, 'a', { by })).toEqual([between(59_000, 60_000), 1, -1]);
      }
      await admin().set(roll.key, 'not a roll');
      expect(await look(bench, roll, 'a')).toEqual([between(59_000, 60_000), 1, -1]);
      expect(await admin().get(roll.key)).toBe('not a roll');
    }),
  },
  WRONGTYPE: {
    'a hash without a lease and without an owner is not a lock, and stays as it is': async (bench) => {
      await admin().hset(bench.name, { name: 'alice', 'visits:1': '3' });
      await expect(bench.run([bench.name], 'a', 30_000, ...UNPARKED, 0)).rejects.toThrow(/^WRONGTYPE .* not a lock/);
      expect(await bench.state()).toEqual({
        [bench.name]: { type: 'hash', value: { name: 'alice', 'visits:1': '3' }, pttl: -1 },
      });
    },
  },
  '-3': { 'too late: nothing is changed': tooLate((late) => ['a', 90_000, ...UNPARKED, late]) },
});

describeScript(acquireNested, {
  '1': {
    'the owner has the given count': async (bench) => {
      const { run, name, state, published } = bench;
      await given(bench, { a: '1' });
      expect(await run([name], 'a', 2, 30_000, 0)).toBe(1);
      expect(await run([name], 'a', 2, 30_000, 0)).toBe(1);
      expect(await state()).toEqual({ [name]: heldBy('a', 2, 60_000) });
      expect(await published()).toEqual([]);
    },
    'R15: a shorter lease does not replace a longer one, and a longer one does': async (bench) => {
      const { run, name, state, notAfter } = bench;
      await given(bench, { a: '1' });
      await run([name], 'a', 2, 200, await notAfter(5_000));
      expect(await state()).toEqual({ [name]: heldBy('a', 2, 60_000) });
      await run([name], 'a', 3, 90_000, await notAfter(5_000));
      expect(await state()).toEqual({ [name]: heldBy('a', 3, 90_000) });
    },
    'a lock without expiry stays without': async (bench) => {
      const { run, name, state } = bench;
      await given(bench, { a: '1' }, -1);
      expect(await run([name], 'a', 2, 30_000, 0)).toBe(1);
      expect(await state()).toEqual({ [name]: heldBy('a', 2, -1) });
    },
  },
  '0': {
    'a lock that is gone is not created': async ({ run, name, state }) => {
      expect(await run([name], 'a', 2, 30_000, 0)).toBe(0);
      expect(await state()).toEqual({});
    },
    "another owner's lock is not changed": async (bench) => {
      const { run, name, state, published } = bench;
      await given(bench, { b: '1' });
      expect(await run([name], 'a', 2, 90_000, 0)).toBe(0);
      expect(await state()).toEqual({ [name]: heldBy('b', 1, 60_000) });
      expect(await published()).toEqual([]);
    },
  },
  '-3': { 'too late: nothing is changed': tooLate((late) => ['a', 2, 90_000, late]) },
});

describeScript(releasePartial, {
  '1': {
    'the owner keeps the lock with the given count and lease': async (bench) => {
      const { run, name, state, published, notAfter } = bench;
      await given(bench, { a: '3' });
      expect(await run([name], 'a', 2, 20_000, await notAfter(5_000))).toBe(1);
      expect(await run([name], 'a', 2, 20_000, 0)).toBe(1);
      expect(await state()).toEqual({ [name]: heldBy('a', 2, 20_000) });
      expect(await published()).toEqual([]);
    },
  },
  '0': {
    'a lock that is gone is not created': async ({ run, name, state, published }) => {
      expect(await run([name], 'a', 1, 30_000, 0)).toBe(0);
      expect(await state()).toEqual({});
      expect(await published()).toEqual([]);
    },
    "another owner's lock is not changed": async (bench) => {
      const { run, name, state } = bench;
      await given(bench, { b: '2' });
      expect(await run([name], 'a', 1, 10_000, 0)).toBe(0);
      expect(await state()).toEqual({ [name]: heldBy('b', 2, 60_000) });
    },
  },
  '-3': { 'too late: nothing is changed': tooLate((late) => ['a', 1, 10_000, late]) },
});

const releasing = wakingProperties(release.script!.source, {
  done: 1,
  payload: '0',
  hold: (bench) => given(bench, { a: '1' }),
  keys: ({ name }) => [name],
  args: ({ channel }, { publish, ours, waiters, own, most, station }) => [
    ...[publish, channel, ours, waiters, own, most, station, 2_000, 'a'],
  ],
});

describeScript(release, {
  '5': releasing['5'],
  '6': releasing['6'],
  '7': releasing['7'],
  '1': {
    ...releasing.done,
    'the lock is free with any previous count, and one message is published': async (bench) => {
      const { run, name, channel, state, published } = bench;
      await given(bench, { a: '3' });
      expect(await run([name], 'PUBLISH', channel, -1, ...NO_ROLL, 'a')).toBe(1);
      expect(await state()).toEqual({});
      expect(await published()).toEqual([{ channel, payload: '0' }]);
    },
    'of several possible owners, the one that has the lock is removed': async (bench) => {
      const { run, name, channel, state, published } = bench;
      await given(bench, { b: '1' });
      expect(await run([name], 'PUBLISH', channel, -1, ...NO_ROLL, 'a', 'b', 'c')).toBe(1);
      expect(await state()).toEqual({});
      expect(await published()).toEqual([{ channel, payload: '0' }]);
    },
    'the message is published with the given command': sharding(async (bench) => {
      const { run, name, channel, state, published } = bench;
      await given(bench, { a: '1' });
      const sharded = admin().duplicate();
      const messages: string[] = [];
      sharded.on('smessage', (from: string, payload: string) => messages.push(`${from} ${payload}`));
      await sharded.ssubscribe(channel);
      expect(await run([name], 'SPUBLISH', channel, -1, ...NO_ROLL, 'a')).toBe(1);
      await sharded.sunsubscribe(channel); // answered behind the message
      await sharded.quit();
      expect(messages).toEqual([`${channel} 0`]);
      expect(await published()).toEqual([]);
      expect(await state()).toEqual({});
    }),
  },
  '0': {
    'for a free lock nothing is published': async ({ run, name, channel, state, published }) => {
      expect(await run([name], 'PUBLISH', channel, -1, ...NO_ROLL, 'a')).toBe(0);
      expect(await state()).toEqual({});
      expect(await published()).toEqual([]);
    },
    "another owner's lock is not changed, and nothing is published": async (bench) => {
      const { run, name, channel, state, published } = bench;
      await given(bench, { b: '1' });
      expect(await run([name], 'PUBLISH', channel, -1, ...NO_ROLL, 'a', 'c')).toBe(0);
      expect(await state()).toEqual({ [name]: heldBy('b', 1, 60_000) });
      expect(await published()).toEqual([]);
    },
  },
});

const handingOff = wakingProperties(handOff.script!.source, {
  done: 2,
  payload: '0',
  form: 'streak',
  hold: (bench) => given(bench, { a: '1' }),
  keys: ({ name }) => [name],
  args: ({ channel }, { publish, ours, waiters, own, most, station }) => [
    ...['a', 'b', 20_000, publish, channel, ours, waiters, own, most, station, 2_000, 0],
  ],
});

/** Passes the lock on from `a` to `b` if no other client is parked. */
const passOn = async (bench: ScriptBench, ours: number, waiters: string, station: string): Promise<unknown> => {
  await given(bench, { a: '1' });
  const { name, channel } = bench;
  const reply = await bench.run(
    [name],
    ...['a', 'b', 20_000, 'PUBLISH', channel, ours, waiters, OWN, 1, station, 2_000, 0],
  );
  expect(await admin().hkeys(name)).toEqual(['b']);
  return reply;
};

describeScript(handOff, {
  '5': handingOff['5'],
  '6': handingOff['6'],
  '7': handingOff['7'],
  '1': {
    'only the own client is parked': withRoll(async (roll, bench) => {
      await roll.park('x');
      expect(await passOn(bench, 0, roll.key, roll.station('x'))).toBe(1);
      expect(await roll.parked()).toBe('x');
    }),
    'other clients are parked, and do not matter with -1': withRoll(async (roll, bench) => {
      await roll.park('ab');
      expect(await passOn(bench, -1, roll.key, '')).toBe(1);
      expect(await roll.told()).toBe('');
    }),
    'the key of the roll has another type: only the subscribers matter': withRoll(async (roll, bench) => {
      await admin().set(roll.key, 'not a roll');
      expect(await passOn(bench, 0, roll.key, '')).toBe(1);
    }),
    'the next owner has the lock, hold count 1, for its own lease, and nothing is published': async (bench) => {
      const { run, name, channel, state, published, notAfter } = bench;
      await given(bench, { a: '1' });
      expect(await run([name], 'a', 'b', 20_000, 'PUBLISH', channel, -1, ...NO_ROLL, await notAfter(5_000))).toBe(1);
      expect(await state()).toEqual({ [name]: heldBy('b', 1, 20_000) });
      expect(await published()).toEqual([]);
    },
    'a repeat writes nothing, and the lease counts from the first run': async (bench) => {
      const { run, name, channel, state, published } = bench;
      await given(bench, { b: '1' }, 5_000);
      expect(await run([name], 'a', 'b', 20_000, 'PUBLISH', channel, 0, ...NO_ROLL, 0)).toBe(1);
      expect(await state()).toEqual({ [name]: heldBy('b', 1, 5_000) });
      expect(await published()).toEqual([]);
    },
    'with only the own number of subscribers the lock is handed over': async (bench) => {
      const { run, name, channel, state, published } = bench;
      await given(bench, { a: '1' });
      const ours = admin().duplicate();
      await ours.subscribe(channel);
      expect(await run([name], 'a', 'b', 20_000, 'PUBLISH', channel, 1, ...NO_ROLL, 0)).toBe(1);
      await ours.quit();
      expect(await state()).toEqual({ [name]: heldBy('b', 1, 20_000) });
      expect(await published()).toEqual([]);
    },
  },
  '2': {
    ...handingOff.done,
    'with one more subscriber than the own ones the lock is freed and published': async (bench) => {
      const { run, name, channel, state, published } = bench;
      await given(bench, { a: '1' });
      const another = admin().duplicate();
      await another.subscribe(channel);
      expect(await run([name], 'a', 'b', 20_000, 'PUBLISH', channel, 0, ...NO_ROLL, 0)).toBe(2);
      await another.quit();
      expect(await state()).toEqual({});
      expect(await published()).toEqual([{ channel, payload: '0' }]);
    },
    'with SPUBLISH the subscribers of the sharded channel count': sharding(async (bench) => {
      const { run, name, channel, state } = bench;
      await given(bench, { a: '1' });
      const another = admin().duplicate();
      await another.ssubscribe(channel);
      expect(await run([name], 'a', 'b', 20_000, 'SPUBLISH', channel, 0, ...NO_ROLL, 0)).toBe(2);
      await another.quit();
      expect(await state()).toEqual({});
    }),
    'without the permission to count subscribers the lock is freed': async (bench) => {
      const { name, channel, state, published } = bench;
      await given(bench, { a: '1' });
      const user = `${name}-user`.replaceAll(/\W/g, '-');
      await admin().acl('SETUSER', user, 'on', 'nopass', '~*', ...[allChannels()].filter(Boolean), '+@all', '-pubsub');
      const restricted = admin().duplicate({ username: user, password: 'any' });
      const keysAndArgs = [name, 'a', 'b', 20_000, 'PUBLISH', channel, 0, ...NO_ROLL, 0];
      expect(await restricted.eval(handOff.script!.source, 1, ...keysAndArgs)).toBe(2);
      await restricted.quit();
      await admin().acl('DELUSER', user);
      expect(await state()).toEqual({});
      expect(await published()).toEqual([{ channel, payload: '0' }]);
    },
  },
  '0': {
    'a lock that is gone is not created': async ({ run, name, channel, state, published }) => {
      expect(await run([name], 'a', 'b', 20_000, 'PUBLISH', channel, -1, ...NO_ROLL, 0)).toBe(0);
      expect(await state()).toEqual({});
      expect(await published()).toEqual([]);
    },
    "another owner's lock is not changed": async (bench) => {
      const { run, name, channel, state, published } = bench;
      await given(bench, { c: '1' });
      expect(await run([name], 'a', 'b', 20_000, 'PUBLISH', channel, 0, ...NO_ROLL, 0)).toBe(0);
      expect(await state()).toEqual({ [name]: heldBy('c', 1, 60_000) });
      expect(await published()).toEqual([]);
    },
  },
  '-3': {
    'too late: nothing is handed over, freed or published': tooLate((late, channel) => [
      'a',
      'b',
      90_000,
      'PUBLISH',
      channel,
      0,
      ...NO_ROLL,
      late,
    ]),
  },
});

describeScript(renew, {
  'an array with one integer for each lock: remaining lease in ms; 0 = the owner no longer holds the lock': {
    'a key that is no longer a lock does not affect the others': async ({ run, name, notAfter }) => {
      const [first, second] = [`${name}:1`, `${name}:2`];
      await admin().set(first, 'taken');
      await admin().hset(second, 'b', '1');
      await admin().pexpire(second, 1_500);
      expect(await run([first, second], await notAfter(5_000), 'a', 20_000, 'b', 30_000)).toEqual([0, 30_000]);
      expect(await admin().get(first)).toBe('taken');
      await admin().del(first);
    },
    'each lock gets its own lease, in the order of the keys': async (bench) => {
      const { run, name, state, published, notAfter } = bench;
      const [first, second] = [`${name}:1`, `${name}:2`];
      await admin().hset(first, 'a', '2');
      await admin().pexpire(first, 1_500);
      await admin().hset(second, 'b', '1');
      await admin().pexpire(second, 1_500);
      const answer = await run([second, first], await notAfter(5_000), 'b', 20_000, 'a', 30_000);
      expect(answer).toEqual([20_000, 30_000]);
      expect(await state()).toEqual({ [first]: heldBy('a', 2, 30_000), [second]: heldBy('b', 1, 20_000) });
      expect(await published()).toEqual([]);
    },
    'R10: a lock that is gone or taken replies 0 and is not changed, and the others are renewed': async (bench) => {
      const { run, name, state } = bench;
      const [gone, taken, held] = [`${name}:gone`, `${name}:taken`, `${name}:held`];
      await admin().hset(taken, 'b', '1');
      await admin().pexpire(taken, 1_500);
      await admin().hset(held, 'a', '1');
      await admin().pexpire(held, 1_500);
      expect(await run([gone, taken, held], 0, 'a', 30_000, 'a', 30_000, 'a', 30_000)).toEqual([0, 0, 30_000]);
      expect(await state()).toEqual({ [taken]: heldBy('b', 1, 1_500), [held]: heldBy('a', 1, 30_000) });
    },
    'a longer lease is not changed, and is returned': async (bench) => {
      const { run, name, state } = bench;
      await given(bench, { a: '1' });
      expect(await run([name], 0, 'a', 30_000)).toEqual([between(59_000, 60_000)]);
      expect(await state()).toEqual({ [name]: heldBy('a', 1, 60_000) });
    },
    'a lock without expiry stays so, and replies the requested lease': async (bench) => {
      const { run, name, state } = bench;
      await given(bench, { a: '1' }, -1);
      expect(await run([name], 0, 'a', 30_000)).toEqual([30_000]);
      expect(await state()).toEqual({ [name]: heldBy('a', 1, -1) });
    },
    'one call renews 100 locks': async (bench) => {
      const { run, name, state } = bench;
      const names = Array.from({ length: 100 }, (_, at) => `${name}:${String(at).padStart(2, '0')}`);
      await Promise.all(names.map((each) => admin().hset(each, 'a', '1')));
      await Promise.all(names.map((each) => admin().pexpire(each, 1_500)));
      const answer = await run(names, 0, ...names.flatMap((_, at) => ['a', 30_000 + at]));
      expect(answer).toEqual(names.map((_, at) => 30_000 + at));
      expect(await state()).toEqual(Object.fromEntries(names.map((each, at) => [each, heldBy('a', 1, 30_000 + at)])));
    },
    'a lock whose lease is shorter costs two commands': async ({ run, name }) => {
      const names = Array.from({ length: 10 }, (_, at) => `${name}:${at}`);
      await Promise.all(names.map((each) => admin().hset(each, 'a', '1')));
      await Promise.all(names.map((each) => admin().pexpire(each, 1_500)));
      const commands = await commandsFor(names, () => run(names, 0, ...names.flatMap(() => ['a', 30_000])));
      // Redis before 7.0 refuses PEXPIRE with GT, and does not run it.
      const each = serverMajor() >= 7 ? ['HEXISTS', 'PEXPIRE'] : ['HEXISTS', 'PTTL', 'PEXPIRE'];
      expect(commands).toEqual(names.flatMap(() => each));
    },
  },
  '-3': { 'too late: nothing is renewed': tooLate((late) => [late, 'b', 90_000]) },
});

const wakingAfter = ({ name }: ScriptBench, roll: Roll, { most = 1, by = admin() } = {}): Promise<unknown> =>
  by.eval(wake.script!.source, 1, roll.key, name, roll.publish, OWN, most);

const leaving = ({ name }: ScriptBench, roll: Roll, duty: 0 | 1, { notAfter = 0, by = admin() } = {}) =>
  by.eval(leave.script!.source, 1, roll.key, name, roll.publish, OWN, roll.station('a'), duty, notAfter);

/** Redis refuses the roll to `lock/wake` or `lock/leave`. */
const refusing = (send: (bench: ScriptBench, roll: Roll, by?: Redis) => Promise<unknown>) => ({
  'the key of the roll has another type': withRoll(async (roll, bench) => {
    await admin().set(roll.key, 'not a roll');
    expect(await send(bench, roll)).toBe(-1);
  }),
  'a permission is missing': withRoll(async (roll, bench) => {
    await roll.park('Ab');
    for (const rules of [['-zrem'], ['-zrange'], ...(serverMajor() >= 7 ? [['&redisson_*']] : [])])
      expect(await send(bench, roll, await roll.refused(...rules))).toBe(-1);
    expect(await roll.told()).toBe('');
    expect(await roll.parked()).toBe('Ab');
  }),
});

const wakeOf = (publish: 'PUBLISH' | 'SPUBLISH') =>
  withRoll(async (roll, bench) => {
    await roll.park('aBcd');
    expect(await wakingAfter(bench, roll, { most: 2 })).toBe(2);
    expect(await roll.told()).toBe('1a 1c 2d');
    expect(await roll.parked()).toBe('d');
  }, publish);

describeScript(wake, {
  n: {
    'the lock is free: as many as asked for are woken, and one more stands by': wakeOf('PUBLISH'),
    'the messages are published with the given command': sharding(wakeOf('SPUBLISH')),
    'the lock is held again: the oldest client stands by': withRoll(async (roll, bench) => {
      await roll.park('Abc');
      await given(bench, { a: '1' });
      expect(await wakingAfter(bench, roll)).toBe(0);
      expect(await roll.told()).toBe('2b');
      expect(await roll.parked()).toBe('bc');
    }),
    'nobody is parked': withRoll(async (roll, bench) => {
      expect(await wakingAfter(bench, roll)).toBe(0);
    }),
  },
  '-1': refusing((bench, roll, by) => wakingAfter(bench, roll, by && { by })),
  '-2': {
    // Only a slot that migrates has this reply: tests/topologies/moving-slot.test.ts.
    'no roll of one server is at another node': withRoll(async (roll, bench) => {
      await roll.park('AB');
      expect(await wakingAfter(bench, roll)).toBe(0);
      expect(await roll.parked()).toBe('');
    }),
  },
});

const leaveOf = (publish: 'PUBLISH' | 'SPUBLISH') =>
  withRoll(async (roll, bench) => {
    await roll.park('aBcde');
    await given(bench, { a: '1' });
    expect(await leaving(bench, roll, 1)).toBe(1);
    expect(await roll.told()).toBe('2c 2d');
    expect(await roll.parked()).toBe('cde');
  }, publish);

describeScript(leave, {
  '1': {
    'the lock is free: the next client is woken, and one more stands by': withRoll(async (roll, bench) => {
      await roll.park('abcd');
      expect(await leaving(bench, roll, 0)).toBe(1);
      expect(await roll.told()).toBe('1b 2c');
      expect(await roll.parked()).toBe('cd');
    }),
    'the lock is held: a client on duty passes its duty to two others': leaveOf('PUBLISH'),
    'the messages are published with the given command': sharding(leaveOf('SPUBLISH')),
    'the lock is held: a client without duty only leaves': withRoll(async (roll, bench) => {
      await roll.park('abc');
      await given(bench, { a: '1' });
      expect(await leaving(bench, roll, 0)).toBe(1);
      expect(await roll.told()).toBe('');
      expect(await roll.parked()).toBe('bc');
    }),
    'a client that was woken is no longer in the roll, and passes that on': withRoll(async (roll, bench) => {
      await roll.park('bc');
      expect(await leaving(bench, roll, 1)).toBe(1);
      expect(await roll.told()).toBe('1b 2c');
    }),
  },
  '-1': refusing((bench, roll, by) => leaving(bench, roll, 1, by && { by })),
  '-2': {
    // Only a slot that migrates has this reply: tests/topologies/moving-slot.test.ts.
    'no roll of one server is at another node': withRoll(async (roll, bench) => {
      await roll.park('aB');
      expect(await leaving(bench, roll, 1)).toBe(1);
      expect(await roll.parked()).toBe('');
    }),
  },
  '-3': {
    'too late: the client, which may wait again, stays': withRoll(async (roll, bench) => {
      await roll.park('ab');
      expect(await leaving(bench, roll, 1, { notAfter: await bench.notAfter(-1) })).toBe(-3);
      expect(await roll.told()).toBe('');
      expect(await roll.parked()).toBe('ab');
    }),
  },
});

test('a roll in which nobody is parked costs a section one command', async () => {
  const [name, notAfter] = [freshName('section'), Date.now() + 60_000];
  const [waiters, channel] = [rollKey(name), lockChannel(name)];
  const run = (
    script: { source: string } | undefined,
    keys: string[],
    ...args: (string | number)[]
  ): Promise<unknown> => admin().eval(script!.source, keys.length, ...keys, ...args);
  const freeing = (own: string) => ['PUBLISH', channel, -1, waiters, own, 1, '', 0, 'a'];
  const streak = (own: string) => ['a', 'b', 30_000, 'PUBLISH', channel, 0, waiters, own, 1, '', 0];
  const token = tokenKey(name);
  const sections: Record<string, (own: string) => Promise<unknown>> = {
    async plain(own) {
      await run(acquire.script, [name], 'a', 30_000, ...UNPARKED, notAfter);
      expect(await run(release.script, [name], ...freeing(own))).toBe(1);
    },
    async fenced(own) {
      await run(fenced.acquire.script, [name, token], 'a', 30_000, 'counter', ...UNPARKED, notAfter);
      expect(await run(release.script, [name], ...freeing(own))).toBe(1);
    },
    async spin(own) {
      await run(acquire.script, [name], 'a', 30_000, ...UNPARKED, notAfter);
      expect(await run(spin.release.script, [name], 'PUBLISH', waiters, own, 'a')).toBe(1);
    },
    async 'streak that is over'(own) {
      await run(acquire.script, [name], 'a', 30_000, ...UNPARKED, notAfter);
      expect(await run(handOff.script, [name], ...streak(own), notAfter)).toBe(1);
      await admin().del(name);
    },
    async 'fenced streak that is over'(own) {
      await run(fenced.acquire.script, [name, token], 'a', 30_000, 'counter', ...UNPARKED, notAfter);
      expect(typeof (await run(fenced.handOff.script, [name, token], ...streak(own), 'counter', notAfter))).toBe(
        'string',
      );
      await admin().del(name);
    },
  };
  const keys = [name, token, waiters, channel, 'NUMSUB'];
  const commands = async (run: () => Promise<unknown>): Promise<string[]> => commandsFor(keys, run);
  for (const [kind, section] of Object.entries(sections)) {
    const [off, on] = [await commands(() => section('')), await commands(() => section(OWN))];
    const more = kind.endsWith('over') ? 'ZCARD' : 'ZRANGE';
    expect([kind, on.filter((command) => command !== more)]).toEqual([kind, off]);
    expect(on).toHaveLength(off.length + 1);
    // Beside these, it runs TIME, which names no key, and the two scripts.
    if (kind === 'plain') expect(off).toHaveLength(5);
  }
  await admin().del(token);
});

test('every script of lua/lock has its tests here', () => {
  const tested = [acquire, acquireNested, releasePartial, release, handOff, renew, wake, leave];
  expect(tested.map(({ name }) => `lua/${name}.lua`).sort()).toEqual(projectFiles('lua/lock'));
});
