import { expect, test } from '@jest/globals';
import { acquire, acquireNested, handOff, release, releasePartial, renew } from '../../src/redis/scripts/lock.js';
import { projectFiles } from '../support/project/project-files.js';
import { admin, testRedisUrl } from '../support/redis.js';
import { MonitorLog } from '../support/servers/monitor-log.js';
import { allChannels, serverMajor } from '../support/servers/server-version.js';
import { between, describeScript, heldBy, type ScriptBench } from './script-bench.js';

const JVM = '8743c9c0-0795-4907-87fd-6c719a6b4586:52';
const HUGE = Number.MAX_SAFE_INTEGER;
/** Redis before 7 has no sharded channels: nothing can be seen of them there. */
const sharding = (property: (bench: ScriptBench) => Promise<void>): ((bench: ScriptBench) => Promise<void>) =>
  serverMajor() >= 7 ? property : () => Promise.resolve();

/** Writes a held lock: `fields` by owner. */
async function given({ name }: ScriptBench, fields: Record<string, string>, leaseMs = 60_000): Promise<void> {
  await admin().hset(name, fields);
  if (leaseMs > 0) await admin().pexpire(name, leaseMs);
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
      expect(await run([name], 'a', 30_000, await notAfter(5_000))).toBeNull();
      expect(await state()).toEqual({ [name]: heldBy('a', 1, 30_000) });
      expect(await published()).toEqual([]);
    },
    'a not-after of 0 is no limit': async ({ run, name, state }) => {
      expect(await run([name], 'a', 30_000, 0)).toBeNull();
      expect(await state()).toEqual({ [name]: heldBy('a', 1, 30_000) });
    },
    'the largest lease is accepted': async ({ run, name, state }) => {
      expect(await run([name], 'a', HUGE, 0)).toBeNull();
      expect(await state()).toEqual({ [name]: heldBy('a', 1, HUGE) });
    },
    'a repeat keeps the count of 1 and never shortens the lease': async (bench) => {
      const { run, name, state } = bench;
      await given(bench, { a: '1' });
      expect(await run([name], 'a', 30_000, 0)).toBeNull();
      expect(await state()).toEqual({ [name]: heldBy('a', 1, 60_000) });
    },
    'a repeat with a longer lease extends the lease': async (bench) => {
      const { run, name, state } = bench;
      await given(bench, { a: '1' }, 10_000);
      expect(await run([name], 'a', 30_000, 0)).toBeNull();
      expect(await state()).toEqual({ [name]: heldBy('a', 1, 30_000) });
    },
    'a copy after a nested acquire keeps the count': async (bench) => {
      const { run, name, state } = bench;
      await given(bench, { a: '2' });
      expect(await run([name], 'a', 30_000, 0)).toBeNull();
      expect(await state()).toEqual({ [name]: heldBy('a', 2, 60_000) });
    },
  },
  n: {
    "another owner's lock is not changed, and its lease is returned": async (bench) => {
      const { run, name, state, published } = bench;
      await given(bench, { b: '2' });
      expect(await run([name], 'a', 90_000, 0)).toEqual(between(59_000, 60_000));
      expect(await state()).toEqual({ [name]: heldBy('b', 2, 60_000) });
      expect(await published()).toEqual([]);
    },
    "another owner's lock without expiry replies -1": async (bench) => {
      const { run, name, state } = bench;
      await given(bench, { [JVM]: '1' }, -1);
      expect(await run([name], 'a', 90_000, 0)).toBe(-1);
      expect(await state()).toEqual({ [name]: heldBy(JVM, 1, -1) });
    },
  },
  WRONGTYPE: {
    'a hash without a lease and without an owner is not a lock, and stays as it is': async (bench) => {
      await admin().hset(bench.name, { name: 'alice', 'visits:1': '3' });
      await expect(bench.run([bench.name], 'a', 30_000, 0)).rejects.toThrow(/^WRONGTYPE .* not a lock/);
      expect(await bench.state()).toEqual({
        [bench.name]: { type: 'hash', value: { name: 'alice', 'visits:1': '3' }, pttl: -1 },
      });
    },
  },
  '-3': { 'too late: nothing is changed': tooLate((late) => ['a', 90_000, late]) },
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

describeScript(release, {
  '1': {
    'the lock is free with any previous count, and one message is published': async (bench) => {
      const { run, name, channel, state, published } = bench;
      await given(bench, { a: '3' });
      expect(await run([name], 'PUBLISH', channel, 'a')).toBe(1);
      expect(await state()).toEqual({});
      expect(await published()).toEqual([{ channel, payload: '0' }]);
    },
    'of several possible owners, the one that has the lock is removed': async (bench) => {
      const { run, name, channel, state, published } = bench;
      await given(bench, { b: '1' });
      expect(await run([name], 'PUBLISH', channel, 'a', 'b', 'c')).toBe(1);
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
      expect(await run([name], 'SPUBLISH', channel, 'a')).toBe(1);
      await sharded.sunsubscribe(channel); // answered behind the message
      await sharded.quit();
      expect(messages).toEqual([`${channel} 0`]);
      expect(await published()).toEqual([]);
      expect(await state()).toEqual({});
    }),
  },
  '0': {
    'for a free lock nothing is published': async ({ run, name, channel, state, published }) => {
      expect(await run([name], 'PUBLISH', channel, 'a')).toBe(0);
      expect(await state()).toEqual({});
      expect(await published()).toEqual([]);
    },
    "another owner's lock is not changed, and nothing is published": async (bench) => {
      const { run, name, channel, state, published } = bench;
      await given(bench, { b: '1' });
      expect(await run([name], 'PUBLISH', channel, 'a', 'c')).toBe(0);
      expect(await state()).toEqual({ [name]: heldBy('b', 1, 60_000) });
      expect(await published()).toEqual([]);
    },
  },
});

describeScript(handOff, {
  '1': {
    'the next owner has the lock, hold count 1, for its own lease, and nothing is published': async (bench) => {
      const { run, name, channel, state, published, notAfter } = bench;
      await given(bench, { a: '1' });
      expect(await run([name], 'a', 'b', 20_000, 'PUBLISH', channel, -1, await notAfter(5_000))).toBe(1);
      expect(await state()).toEqual({ [name]: heldBy('b', 1, 20_000) });
      expect(await published()).toEqual([]);
    },
    'a repeat writes nothing, and the lease counts from the first run': async (bench) => {
      const { run, name, channel, state, published } = bench;
      await given(bench, { b: '1' }, 5_000);
      expect(await run([name], 'a', 'b', 20_000, 'PUBLISH', channel, 0, 0)).toBe(1);
      expect(await state()).toEqual({ [name]: heldBy('b', 1, 5_000) });
      expect(await published()).toEqual([]);
    },
    'with only the own number of subscribers the lock is handed over': async (bench) => {
      const { run, name, channel, state, published } = bench;
      await given(bench, { a: '1' });
      const ours = admin().duplicate();
      await ours.subscribe(channel);
      expect(await run([name], 'a', 'b', 20_000, 'PUBLISH', channel, 1, 0)).toBe(1);
      await ours.quit();
      expect(await state()).toEqual({ [name]: heldBy('b', 1, 20_000) });
      expect(await published()).toEqual([]);
    },
  },
  '2': {
    'with one more subscriber than the own ones the lock is freed and published': async (bench) => {
      const { run, name, channel, state, published } = bench;
      await given(bench, { a: '1' });
      const another = admin().duplicate();
      await another.subscribe(channel);
      expect(await run([name], 'a', 'b', 20_000, 'PUBLISH', channel, 0, 0)).toBe(2);
      await another.quit();
      expect(await state()).toEqual({});
      expect(await published()).toEqual([{ channel, payload: '0' }]);
    },
    'with SPUBLISH the subscribers of the sharded channel count': sharding(async (bench) => {
      const { run, name, channel, state } = bench;
      await given(bench, { a: '1' });
      const another = admin().duplicate();
      await another.ssubscribe(channel);
      expect(await run([name], 'a', 'b', 20_000, 'SPUBLISH', channel, 0, 0)).toBe(2);
      await another.quit();
      expect(await state()).toEqual({});
    }),
    'without the permission to count subscribers the lock is freed': async (bench) => {
      const { name, channel, state, published } = bench;
      await given(bench, { a: '1' });
      const user = `${name}-user`.replaceAll(/\W/g, '-');
      await admin().acl('SETUSER', user, 'on', 'nopass', '~*', ...[allChannels()].filter(Boolean), '+@all', '-pubsub');
      const restricted = admin().duplicate({ username: user, password: 'any' });
      const keysAndArgs = [name, 'a', 'b', 20_000, 'PUBLISH', channel, 0, 0];
      expect(await restricted.eval(handOff.script!.source, 1, ...keysAndArgs)).toBe(2);
      await restricted.quit();
      await admin().acl('DELUSER', user);
      expect(await state()).toEqual({});
      expect(await published()).toEqual([{ channel, payload: '0' }]);
    },
  },
  '0': {
    'a lock that is gone is not created': async ({ run, name, channel, state, published }) => {
      expect(await run([name], 'a', 'b', 20_000, 'PUBLISH', channel, -1, 0)).toBe(0);
      expect(await state()).toEqual({});
      expect(await published()).toEqual([]);
    },
    "another owner's lock is not changed": async (bench) => {
      const { run, name, channel, state, published } = bench;
      await given(bench, { c: '1' });
      expect(await run([name], 'a', 'b', 20_000, 'PUBLISH', channel, 0, 0)).toBe(0);
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

test('every script of lua/lock has its tests here', () => {
  const tested = [acquire, acquireNested, releasePartial, release, handOff, renew];
  expect(tested.map(({ name }) => `lua/${name}.lua`).sort()).toEqual(projectFiles('lua/lock'));
});
