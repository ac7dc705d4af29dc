import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { requestsKey, semaphoreChannel, takenPermitsKey } from '../../src/redis/keys.js';
import {
  acquire,
  add,
  count,
  expire,
  handOff,
  lease,
  release,
  remove,
  set,
  trySet,
  updateLease,
} from '../../src/redis/scripts/permit-expirable-semaphore.js';
import { admin } from '../support/redis.js';
import { between, describeScript, openBench, type OpenBench, type ScriptBench } from './script-bench.js';

/** Redisson's score for a permit without a lease. */
const NEVER = 922337203685477;
const id = (digit: string): string => digit.repeat(32);
const raw = (digit: string): Buffer => Buffer.from(id(digit), 'hex');

const keys = ({ name }: ScriptBench) => [name, takenPermitsKey(name)];
const channel = ({ name }: ScriptBench) => semaphoreChannel(name);
const free = ({ name }: ScriptBench) => admin().get(name);
const message = ({ name }: ScriptBench, payload: string) => [{ channel: semaphoreChannel(name), payload }];

const run = ({ script }: { script: { source: string } | undefined }, keys: string[], ...args: (string | number)[]) =>
  admin().eval(script!.source, keys.length, ...keys, ...args);

/** Permit -> ms until its lease ends, by the server's clock; undefined: not taken. */
async function left(bench: ScriptBench, digit: string): Promise<number | undefined> {
  const score = await admin().zscore(takenPermitsKey(bench.name), raw(digit));
  if (score === null) return undefined;
  return Number(score) === NEVER ? Infinity : Number(score) - (await bench.notAfter(0));
}
/** Takes a permit by hand, for `ms` from now. */
async function has(bench: ScriptBench, digit: string, ms: number): Promise<void> {
  const ends = ms === Infinity ? NEVER : (await bench.notAfter(0)) + ms;
  await admin().zadd(takenPermitsKey(bench.name), ends, raw(digit));
}

const taking = (bench: ScriptBench, leaseMs: number, digits: string, notAfter = 0, declared = -1) =>
  run(acquire, keys(bench), notAfter, leaseMs, 'PUBLISH', channel(bench), declared, ...Array.from(digits, id));

describeScript(acquire, {
  'an array: 1 = taken, 0 = too few are free and none is taken, -1 = the semaphore does not exist and none is': {
    'permits are stored under the bytes of their ids until their leases end by the server time': async (bench) => {
      await admin().set(bench.name, '5');
      expect(await taking(bench, 20_000, 'ab', await bench.notAfter(5_000))).toEqual([1, 3, between(19_000, 20_000)]);
      expect(await free(bench)).toBe('3');
      expect(await left(bench, 'a')).toEqual(between(19_000, 20_000));
      expect(await left(bench, 'b')).toEqual(between(19_000, 20_000));
      expect(await bench.published()).toEqual([]);
    },
    'permits without a lease stay taken, and no end of a lease is returned': async (bench) => {
      await admin().set(bench.name, '1');
      expect(await taking(bench, -1, 'a')).toEqual([1, 0, -1]);
      expect(await left(bench, 'a')).toBe(Infinity);
      expect(await taking(bench, -1, 'b')).toEqual([0, 0, -1]);
    },
    'a lease beyond the largest number of Redisson is stored as no lease': async (bench) => {
      await admin().set(bench.name, '1');
      expect(await taking(bench, NEVER, 'a')).toEqual([1, 0, -1]);
      expect(await left(bench, 'a')).toBe(Infinity);
    },
    'with too few permits none is taken, and the end of the next lease is returned': async (bench) => {
      await admin().set(bench.name, '1');
      await has(bench, 'a', 30_000);
      await has(bench, 'b', 10_000);
      expect(await taking(bench, -1, 'cd')).toEqual([0, 1, between(9_000, 10_000)]);
      expect(await free(bench)).toBe('1');
      expect(await left(bench, 'c')).toBeUndefined();
    },
    'a missing semaphore without a declared number is not created': async (bench) => {
      expect(await taking(bench, -1, 'a')).toEqual([-1, 0, -1]);
      expect(await free(bench)).toBeNull();
    },
    'a missing semaphore with a declared number is created, and a repeat takes no further permits': async (bench) => {
      expect(await taking(bench, -1, 'ab', 0, 3)).toEqual([1, 1, -1]);
      expect(await taking(bench, -1, 'ab', 0, 3)).toEqual([1, 1, -1]);
      expect(await free(bench)).toBe('1');
      expect(await bench.published()).toEqual(message(bench, '3'));
      await admin().del(...keys(bench));
      expect(await taking(bench, -1, 'ab', 0, 1)).toEqual([0, 1, -1]);
      expect(await free(bench)).toBe('1');
    },
    'the permits that are taken stay taken if Redis has lost the count alone': async (bench) => {
      await has(bench, 'a', Infinity);
      await has(bench, 'b', -1);
      expect(await taking(bench, -1, 'cde', 0, 3)).toEqual([0, 2, -1]);
      expect(await taking(bench, -1, 'cd', 0, 3)).toEqual([1, 0, -1]);
      expect(await free(bench)).toBe('0');
    },
    'R1: a repeat takes no further permits, and the lease counts from the repeat': async (bench) => {
      await admin().set(bench.name, '2');
      await taking(bench, 5_000, 'ab');
      expect(await taking(bench, 20_000, 'ab')).toEqual([1, 0, between(19_000, 20_000)]);
      expect(await free(bench)).toBe('0');
    },
    'expired permits are all freed first and published (hazard 41)': async (bench) => {
      await admin().set(bench.name, '0');
      for (const digit of 'abc') await has(bench, digit, -1);
      expect(await taking(bench, -1, 'd')).toEqual([1, 2, -1]);
      expect(await bench.published()).toEqual(message(bench, '3'));
      expect(await left(bench, 'a')).toBeUndefined();
    },
    'nothing is published while the number is negative': async (bench) => {
      await admin().set(bench.name, '-2');
      await has(bench, 'a', -1);
      expect(await taking(bench, -1, 'd')).toEqual([0, -1, -1]);
      expect(await bench.published()).toEqual([]);
    },
    'taken permits expire with the semaphore, also if its expiry is removed (hazard 42)': async (bench) => {
      await admin().set(bench.name, '3', 'PX', 60_000);
      await taking(bench, -1, 'a');
      expect(await admin().pttl(takenPermitsKey(bench.name))).toEqual(between(59_000, 60_000));
      await admin().persist(bench.name);
      await taking(bench, -1, 'b');
      expect(await admin().pttl(takenPermitsKey(bench.name))).toBe(-1);
    },
  },
  WRONGTYPE: {
    'a string that is not a number stays as it is': async (bench) => {
      await admin().set(bench.name, 'hello');
      await expect(taking(bench, 20_000, 'a')).rejects.toThrow(/^WRONGTYPE .* not a count/);
      expect(await admin().get(bench.name)).toBe('hello');
      expect(await bench.published()).toEqual([]);
    },
  },
  '-3': {
    'too late: nothing is taken or freed': async (bench) => {
      await admin().set(bench.name, '1');
      await has(bench, 'a', -1);
      expect(await taking(bench, -1, 'b', await bench.notAfter(-1))).toBe(-3);
      expect(await free(bench)).toBe('1');
      expect(await left(bench, 'b')).toBeUndefined();
    },
  },
});

const giving = (bench: ScriptBench, digits: string, declared = -1) =>
  run(release, keys(bench), 'PUBLISH', channel(bench), declared, 0, ...Array.from(digits, id));
describeScript(release, {
  '1': {
    'permits are released, and the number of free permits is published': async (bench) => {
      await admin().set(bench.name, '1');
      await has(bench, 'a', 10_000);
      await has(bench, 'b', Infinity);
      expect(await giving(bench, 'ab')).toBe(1);
      expect(await free(bench)).toBe('3');
      expect(await bench.published()).toEqual(message(bench, '3'));
    },
    'nothing is published while the number is negative (hazard 30)': async (bench) => {
      await admin().set(bench.name, '-2');
      await has(bench, 'a', Infinity);
      expect(await giving(bench, 'a')).toBe(1);
      expect(await bench.published()).toEqual([]);
    },
  },
  '0': {
    'R1: a repeat finds nothing to release (hazard 11)': async (bench) => {
      await admin().set(bench.name, '0');
      await has(bench, 'a', Infinity);
      await giving(bench, 'a');
      expect(await giving(bench, 'a')).toBe(0);
      expect(await free(bench)).toBe('1');
    },
    'expired permits are freed, too': async (bench) => {
      await admin().set(bench.name, '0');
      await has(bench, 'a', -1);
      expect(await giving(bench, 'a')).toBe(0);
      expect(await free(bench)).toBe('1');
    },
  },
  '2': {
    'with an id that is not taken none is released': async (bench) => {
      await admin().set(bench.name, '1');
      await has(bench, 'a', Infinity);
      expect(await giving(bench, 'ab')).toBe(2);
      expect(await free(bench)).toBe('1');
      expect(await bench.published()).toEqual([]);
    },
    'an expired permit is freed, and the others stay taken': async (bench) => {
      await admin().set(bench.name, '0');
      await has(bench, 'a', -1);
      await has(bench, 'b', Infinity);
      expect(await giving(bench, 'ab')).toBe(2);
      expect(await free(bench)).toBe('1');
      expect(await left(bench, 'b')).toBe(Infinity);
      expect(await bench.published()).toEqual(message(bench, '1'));
    },
  },
});

/** Exchanges permits: of each pair, the next waiter gets those of the first digits for those of the second. */
const exchanging = (bench: ScriptBench, ...pairs: [next: string, digits: string][]) =>
  exchangingFor(bench, 20_000, -1, pairs);

const exchangingFor = (
  bench: ScriptBench,
  leaseMs: number,
  ours: number,
  pairs: readonly [string, string][],
  declared = -1,
) => {
  const [[next, digits]] = pairs as [[string, string]];
  const ids = pairs.flatMap((pair) => pair.flatMap((part) => Array.from(part, id)));
  return run(
    handOff,
    keys(bench),
    'PUBLISH',
    channel(bench),
    ours,
    declared,
    leaseMs,
    next.length,
    digits.length,
    ...ids,
  );
};

/** Releases the permits of `digits`, and takes those of `next` for the next waiter. */
const handing = (bench: ScriptBench, digits: string, next: string, leaseMs = 20_000, ours = -1) =>
  exchangingFor(bench, leaseMs, ours, [[next, digits]]);

describeScript(handOff, {
  'an array with one number for each exchange: 1 = released, and the next waiter has its new permits; 2 = only': {
    'each exchange of a request is done as a whole or not at all': async (bench) => {
      await admin().set(bench.name, '0');
      for (const digit of 'abd') await has(bench, digit, 10_000);
      await has(bench, 'c', -1);
      expect(await exchanging(bench, ['e', 'a'], ['f', 'c'], ['0', 'b'])).toEqual([1, 0, 1]);
      expect(await left(bench, 'e')).toEqual(between(19_000, 20_000));
      expect(await left(bench, 'f')).toBeUndefined();
      expect(await left(bench, '0')).toEqual(between(19_000, 20_000));
      expect(await left(bench, 'd')).toEqual(between(9_000, 10_000));
      expect(await free(bench)).toBe('0');
    },
    'a permit that several exchanges of a request release is exchanged once': async (bench) => {
      await admin().set(bench.name, '0');
      for (const digit of 'ab') await has(bench, digit, 10_000);
      for (let i = 0; i < 2; i += 1) {
        expect(await exchanging(bench, ['c', 'a'], ['d', 'a'], ['e', 'b'])).toEqual([1, 0, 1]);
        expect(await admin().zcard(takenPermitsKey(bench.name))).toBe(2);
        expect(await left(bench, 'd')).toBeUndefined();
        expect(await free(bench)).toBe('0');
      }
    },
    'of exchanges that share a permit only the first one takes place': async (bench) => {
      await admin().set(bench.name, '0');
      for (const digit of 'abc') await has(bench, digit, 10_000);
      for (let i = 0; i < 2; i += 1) {
        expect(await exchanging(bench, ['de', 'ab'], ['f0', 'bc'])).toEqual([1, 3]);
        expect(await admin().zcard(takenPermitsKey(bench.name))).toBe(3);
        expect(await left(bench, 'c')).toEqual(between(9_000, 10_000));
      }
    },
    'R1: a repeat of several exchanges writes nothing': async (bench) => {
      await admin().set(bench.name, '0');
      for (const digit of 'ab') await has(bench, digit, 10_000);
      for (let i = 0; i < 2; i += 1) expect(await exchanging(bench, ['c', 'a'], ['d', 'b'])).toEqual([1, 1]);
      expect(await admin().zcard(takenPermitsKey(bench.name))).toBe(2);
      expect(await free(bench)).toBe('0');
    },
    'R33: for other clients one exchange of a request is only a release': async (bench) => {
      await admin().set(bench.name, '0');
      for (const digit of 'abc') await has(bench, digit, 10_000);
      const another = admin().duplicate();
      await another.subscribe(channel(bench));
      expect(
        await exchangingFor(bench, 20_000, 0, [
          ['d', 'a'],
          ['e', 'b'],
          ['f', 'c'],
        ]),
      ).toEqual([2, 1, 1]);
      await another.quit();
      expect(await admin().zcard(takenPermitsKey(bench.name))).toBe(2);
      expect(await free(bench)).toBe('1');
      expect(await bench.published()).toEqual(message(bench, '1'));
    },
    'as many exchanges are only releases as there are too many permits': async (bench) => {
      await admin().set(bench.name, '-2');
      for (const digit of 'abc') await has(bench, digit, 10_000);
      expect(await exchanging(bench, ['d', 'a'], ['e', 'b'], ['f', 'c'])).toEqual([2, 2, 1]);
      expect(await left(bench, 'f')).toEqual(between(19_000, 20_000));
      expect(await free(bench)).toBe('0');
      expect(await bench.published()).toEqual([]);
    },
    'more exchanges than one command takes': async (bench) => {
      await admin().set(bench.name, '0');
      const many = Array.from({ length: 1_100 }, (_, i) => i.toString(16).padStart(32, '0'));
      for (const each of many) await admin().zadd(takenPermitsKey(bench.name), NEVER, Buffer.from(each, 'hex'));
      const ids = many.flatMap((each) => [each.replace(/^0/, '1'), each]);
      const done = await run(handOff, keys(bench), 'PUBLISH', channel(bench), -1, -1, 20_000, 1, 1, ...ids);
      expect(done).toEqual(many.map(() => 1));
      expect(await admin().zcard(takenPermitsKey(bench.name))).toBe(1_100);
      expect(await admin().zscore(takenPermitsKey(bench.name), Buffer.from(many[1_099]!, 'hex'))).toBeNull();
    },
    'the next permit has its own lease, the old one is released, and nothing is published': async (bench) => {
      await admin().set(bench.name, '0');
      await has(bench, 'a', 10_000);
      expect(await handing(bench, 'a', 'b')).toEqual([1]);
      expect(await left(bench, 'a')).toBeUndefined();
      expect(await left(bench, 'b')).toEqual(between(19_000, 20_000));
      expect(await free(bench)).toBe('0');
      expect(await bench.published()).toEqual([]);
    },
    'R1: a repeat writes nothing, and the lease counts from the first run': async (bench) => {
      await admin().set(bench.name, '0');
      await has(bench, 'a', 10_000);
      await handing(bench, 'a', 'b', 15_000);
      expect(await handing(bench, 'a', 'b', 60_000)).toEqual([1]);
      expect(await left(bench, 'b')).toEqual(between(14_000, 15_000));
      expect(await free(bench)).toBe('0');
      expect(await bench.published()).toEqual([]);
    },
    'permits that the next waiter does not want become free, and are published': async (bench) => {
      await admin().set(bench.name, '1');
      for (const digit of 'abc') await has(bench, digit, 10_000);
      expect(await handing(bench, 'abc', 'd')).toEqual([1]);
      expect(await free(bench)).toBe('3');
      expect(await left(bench, 'd')).toEqual(between(19_000, 20_000));
      expect(await admin().zcard(takenPermitsKey(bench.name))).toBe(1);
      expect(await bench.published()).toEqual(message(bench, '3'));
    },
    'permits without a lease are passed on without one': async (bench) => {
      await admin().set(bench.name, '0');
      await has(bench, 'a', Infinity);
      expect(await handing(bench, 'a', 'b', -1)).toEqual([1]);
      expect(await left(bench, 'b')).toBe(Infinity);
      expect(await bench.published()).toEqual([]);
    },
    'R21: a lease that ends sooner than the old one is published': async (bench) => {
      await admin().set(bench.name, '0');
      await has(bench, 'a', 60_000);
      expect(await handing(bench, 'a', 'b', 5_000)).toEqual([1]);
      expect(await bench.published()).toEqual(message(bench, '1'));
    },
    'with only the own number of subscribers the permit is passed on': async (bench) => {
      await admin().set(bench.name, '0');
      await has(bench, 'a', 10_000);
      const own = admin().duplicate();
      await own.subscribe(channel(bench));
      expect(await handing(bench, 'a', 'b', 20_000, 1)).toEqual([1]);
      await own.quit();
      expect(await left(bench, 'b')).toEqual(between(19_000, 20_000));
    },
    'taken permits keep the expiry of the semaphore': async (bench) => {
      await admin().set(bench.name, '0', 'PX', 60_000);
      await has(bench, 'a', 10_000);
      await admin().pexpire(takenPermitsKey(bench.name), 60_000);
      expect(await handing(bench, 'a', 'b')).toEqual([1]);
      expect(await admin().pttl(takenPermitsKey(bench.name))).toEqual(between(59_000, 60_000));
    },
    'with one more subscriber than the own ones the permit is released and published': async (bench) => {
      await admin().set(bench.name, '0');
      await has(bench, 'a', 10_000);
      const another = admin().duplicate();
      await another.subscribe(channel(bench));
      expect(await handing(bench, 'a', 'b', 20_000, 0)).toEqual([2]);
      await another.quit();
      expect(await left(bench, 'a')).toBeUndefined();
      expect(await left(bench, 'b')).toBeUndefined();
      expect(await free(bench)).toBe('1');
      expect(await bench.published()).toEqual(message(bench, '1'));
    },
    'while the number is negative the permit is released, and nothing is published': async (bench) => {
      await admin().set(bench.name, '-2');
      await has(bench, 'a', 10_000);
      expect(await handing(bench, 'a', 'b')).toEqual([2]);
      expect(await left(bench, 'b')).toBeUndefined();
      expect(await free(bench)).toBe('-1');
      expect(await bench.published()).toEqual([]);
    },
    'a permit that is not taken, or has expired: nothing is passed on': async (bench) => {
      await admin().set(bench.name, '0');
      await has(bench, 'a', -1);
      expect(await handing(bench, 'a', 'b')).toEqual([0]);
      expect(await handing(bench, 'c', 'd')).toEqual([0]);
      expect(await left(bench, 'b')).toBeUndefined();
      expect(await free(bench)).toBe('0');
      expect(await bench.published()).toEqual([]);
    },
    'R1: a copy that comes after the next permit was released passes nothing on': async (bench) => {
      await admin().set(bench.name, '0');
      await has(bench, 'a', 10_000);
      await handing(bench, 'a', 'b');
      await giving(bench, 'b');
      expect(await handing(bench, 'a', 'b')).toEqual([0]);
      expect(await left(bench, 'b')).toBeUndefined();
      expect(await free(bench)).toBe('1');
    },
    'with an id that is not taken none is released, and nothing is passed on': async (bench) => {
      await admin().set(bench.name, '0');
      await has(bench, 'a', Infinity);
      expect(await handing(bench, 'ab', 'cd')).toEqual([3]);
      expect(await left(bench, 'a')).toBe(Infinity);
      expect(await left(bench, 'c')).toBeUndefined();
      expect(await bench.published()).toEqual([]);
    },
  },
});

const counting = (bench: ScriptBench, declared = -1) => run(count, keys(bench), 'PUBLISH', channel(bench), declared);
describeScript(count, {
  'an array: 1 = the semaphore exists, 0 = it does not; free permits; taken permits': {
    'free and taken permits are counted after expired ones are freed': async (bench) => {
      await admin().set(bench.name, '1');
      await has(bench, 'a', -1);
      await has(bench, 'b', 10_000);
      await has(bench, 'c', Infinity);
      expect(await counting(bench)).toEqual([1, 2, 2]);
      expect(await bench.published()).toEqual(message(bench, '2'));
    },
    'no semaphore': async (bench) => {
      expect(await counting(bench)).toEqual([0, 0, 0]);
      expect(await free(bench)).toBeNull();
    },
  },
});

const setting = (bench: ScriptBench, permits: number, sequence: number, notAfter = 0) =>
  run(
    set,
    [...keys(bench), requestsKey(bench.name, 'client')],
    permits,
    'PUBLISH',
    channel(bench),
    0,
    sequence,
    notAfter,
  );
const lane = (bench: ScriptBench, text: string) => admin().hset(requestsKey(bench.name, 'client'), '0', text);
describeScript(set, {
  '1': {
    'the total number is set, up and down, and taken permits stay taken': async (bench) => {
      expect(await setting(bench, 3, 1)).toBe(1);
      expect(await free(bench)).toBe('3');
      await admin().decr(bench.name);
      await has(bench, 'a', Infinity);
      expect(await setting(bench, 5, 2)).toBe(1);
      expect(await free(bench)).toBe('4');
      expect(await bench.published()).toEqual([...message(bench, '3'), ...message(bench, '5')]);
    },
    'a number below the taken permits makes the free number negative': async (bench) => {
      await admin().set(bench.name, '0');
      for (const digit of 'abc') await has(bench, digit, Infinity);
      expect(await setting(bench, 1, 1)).toBe(1);
      expect(await free(bench)).toBe('-2');
    },
    'an unchanged number publishes nothing': async (bench) => {
      await admin().set(bench.name, '2', 'PX', 60_000);
      expect(await setting(bench, 2, 1)).toBe(1);
      expect(await bench.published()).toEqual([]);
    },
    'an expiry stays': async (bench) => {
      await admin().set(bench.name, '2', 'PX', 60_000);
      await setting(bench, 4, 1);
      expect(await admin().pttl(bench.name)).toEqual(between(59_000, 60_000));
    },
  },
  n: {
    'R1: a repeat after another request sets nothing again': async (bench) => {
      await setting(bench, 3, 1);
      await admin().set(bench.name, '7');
      expect(await setting(bench, 3, 1)).toBe(1);
      expect(await free(bench)).toBe('7');
    },
  },
  '-3': {
    'too late: nothing is set': async (bench) => {
      expect(await setting(bench, 3, 1, await bench.notAfter(-1))).toBe(-3);
      expect(await free(bench)).toBeNull();
    },
  },
  '-4': {
    'cancelled or overtaken: nothing is set': async (bench) => {
      await lane(bench, '2:-4');
      expect(await setting(bench, 3, 2)).toBe(-4);
      expect(await setting(bench, 3, 1)).toBe(-4);
      expect(await free(bench)).toBeNull();
    },
  },
});

const updating = (bench: ScriptBench, digit: string, leaseMs: number, notAfter = 0, declared = -1) =>
  run(updateLease, keys(bench), id(digit), leaseMs, 'PUBLISH', channel(bench), declared, notAfter);
describeScript(updateLease, {
  '1': {
    'a longer lease, or none, is set without a message': async (bench) => {
      await has(bench, 'a', 5_000);
      expect(await updating(bench, 'a', 20_000)).toBe(1);
      expect(await left(bench, 'a')).toEqual(between(19_000, 20_000));
      expect(await updating(bench, 'a', -1)).toBe(1);
      expect(await left(bench, 'a')).toBe(Infinity);
      expect(await bench.published()).toEqual([]);
    },
    'R21: a shorter lease is set with a message': async (bench) => {
      await has(bench, 'a', 60_000);
      expect(await updating(bench, 'a', 5_000)).toBe(1);
      expect(await left(bench, 'a')).toEqual(between(4_000, 5_000));
      expect(await bench.published()).toEqual(message(bench, '1'));
    },
  },
  '0': {
    'a permit that is not taken or has expired': async (bench) => {
      await admin().set(bench.name, '0');
      await has(bench, 'a', -1);
      expect(await updating(bench, 'b', 5_000)).toBe(0);
      expect(await updating(bench, 'a', 5_000)).toBe(0);
      expect(await left(bench, 'a')).toBeUndefined();
      expect(await free(bench)).toBe('1');
    },
  },
  '-3': {
    'too late: the lease stays': async (bench) => {
      await has(bench, 'a', 60_000);
      expect(await updating(bench, 'a', 5_000, await bench.notAfter(-1))).toBe(-3);
      expect(await left(bench, 'a')).toEqual(between(59_000, 60_000));
    },
  },
});

const asking = (bench: ScriptBench, digit: string, declared = -1) =>
  run(lease, keys(bench), id(digit), 'PUBLISH', channel(bench), declared);
describeScript(lease, {
  n: {
    'the remaining lease': async (bench) => {
      await has(bench, 'a', 5_000);
      expect(await asking(bench, 'a')).toEqual(between(4_000, 5_000));
    },
  },
  '-1': {
    'a permit without a lease': async (bench) => {
      await has(bench, 'a', Infinity);
      expect(await asking(bench, 'a')).toBe(-1);
    },
  },
  '-2': {
    'a permit that is not taken or has expired, which is then freed': async (bench) => {
      await admin().set(bench.name, '0');
      await has(bench, 'a', -1);
      expect(await asking(bench, 'b')).toBe(-2);
      expect(await asking(bench, 'a')).toBe(-2);
      expect(await bench.published()).toEqual(message(bench, '1'));
    },
  },
});

const three = (bench: ScriptBench) => [...keys(bench), requestsKey(bench.name, 'client')];
const removing = (bench: ScriptBench, sequence: number, notAfter = 0) =>
  run(remove, three(bench), 'PUBLISH', channel(bench), 0, sequence, notAfter);
describeScript(remove, {
  '1': {
    'both keys are deleted, and a message wakes the waiters': async (bench) => {
      await admin().set(bench.name, '2');
      await has(bench, 'a', Infinity);
      expect(await removing(bench, 1)).toBe(1);
      expect(await admin().exists(...keys(bench))).toBe(0);
      await has(bench, 'a', Infinity);
      expect(await removing(bench, 2)).toBe(1);
      expect(await admin().exists(...keys(bench))).toBe(0);
      expect(await bench.published()).toEqual([...message(bench, '1'), ...message(bench, '1')]);
    },
  },
  '0': {
    'a semaphore that does not exist publishes nothing': async (bench) => {
      expect(await removing(bench, 1)).toBe(0);
      expect(await bench.published()).toEqual([]);
    },
  },
  n: {
    'R1: a repeat deletes no semaphore that was created since': async (bench) => {
      await admin().set(bench.name, '2');
      await removing(bench, 1);
      await admin().set(bench.name, '3');
      expect(await removing(bench, 1)).toBe(1);
      expect(await free(bench)).toBe('3');
    },
  },
  WRONGTYPE: {
    'a string that is not a number stays as it is': async (bench) => {
      await admin().set(bench.name, 'hello');
      await expect(removing(bench, 1)).rejects.toThrow(/^WRONGTYPE .* not a count/);
      expect(await free(bench)).toBe('hello');
    },
  },
  '-3': {
    'too late: nothing is deleted': async (bench) => {
      await admin().set(bench.name, '2');
      expect(await removing(bench, 1, await bench.notAfter(-1))).toBe(-3);
      expect(await free(bench)).toBe('2');
    },
  },
  '-4': {
    'cancelled or overtaken: nothing is deleted': async (bench) => {
      await admin().set(bench.name, '2');
      await lane(bench, '2:-4');
      expect(await removing(bench, 2)).toBe(-4);
      expect(await removing(bench, 1)).toBe(-4);
      expect(await free(bench)).toBe('2');
    },
  },
});

const expiring = (bench: ScriptBench, sequence: number, notAfter = 0) =>
  run(expire, three(bench), 60_000, 0, sequence, notAfter);
describeScript(expire, {
  '1': {
    'both keys expire after the time': async (bench) => {
      await admin().set(bench.name, '2');
      await has(bench, 'a', Infinity);
      expect(await expiring(bench, 1)).toBe(1);
      for (const key of keys(bench)) expect(await admin().pttl(key)).toEqual(between(59_000, 60_000));
    },
  },
  '0': {
    'a semaphore that does not exist is not created': async (bench) => {
      expect(await expiring(bench, 1)).toBe(0);
      expect(await admin().exists(...keys(bench))).toBe(0);
    },
  },
  n: {
    'R1: a repeat sets no expiry again': async (bench) => {
      await admin().set(bench.name, '2');
      await expiring(bench, 1);
      await admin().persist(bench.name);
      expect(await expiring(bench, 1)).toBe(1);
      expect(await admin().pttl(bench.name)).toBe(-1);
    },
  },
  '-3': {
    'too late: no expiry is set': async (bench) => {
      await admin().set(bench.name, '2');
      expect(await expiring(bench, 1, await bench.notAfter(-1))).toBe(-3);
      expect(await admin().pttl(bench.name)).toBe(-1);
    },
  },
  '-4': {
    'cancelled or overtaken: no expiry is set': async (bench) => {
      await admin().set(bench.name, '2');
      await lane(bench, '2:-4');
      expect(await expiring(bench, 1)).toBe(-4);
      expect(await admin().pttl(bench.name)).toBe(-1);
    },
  },
});

const trying = (bench: ScriptBench, permits: number, sequence: number, notAfter = 0) =>
  run(trySet, three(bench), permits, 'PUBLISH', channel(bench), 0, sequence, notAfter);
describeScript(trySet, {
  '1': {
    'a semaphore is created, and its permits are published': async (bench) => {
      expect(await trying(bench, 4, 1)).toBe(1);
      expect(await free(bench)).toBe('4');
      expect(await bench.published()).toEqual(message(bench, '4'));
    },
  },
  '0': {
    'an existing semaphore is not changed': async (bench) => {
      await admin().set(bench.name, '1');
      expect(await trying(bench, 4, 1)).toBe(0);
      expect(await free(bench)).toBe('1');
      expect(await bench.published()).toEqual([]);
    },
  },
  n: {
    'R1: a repeat creates nothing again and replies the same': async (bench) => {
      await trying(bench, 4, 1);
      await admin().del(bench.name);
      expect(await trying(bench, 4, 1)).toBe(1);
      expect(await free(bench)).toBeNull();
    },
  },
  '-3': {
    'too late: nothing is created': async (bench) => {
      expect(await trying(bench, 4, 1, await bench.notAfter(-1))).toBe(-3);
      expect(await free(bench)).toBeNull();
    },
  },
  '-4': {
    'cancelled or overtaken: nothing is created': async (bench) => {
      await lane(bench, '2:-4');
      expect(await trying(bench, 4, 1)).toBe(-4);
      expect(await free(bench)).toBeNull();
    },
  },
});

const adding = (bench: ScriptBench, permits: number, sequence: number, declared = -1, notAfter = 0) =>
  run(add, three(bench), permits, declared, 'PUBLISH', channel(bench), 0, sequence, notAfter);
describeScript(add, {
  '1': {
    'the number changes in both directions, and a positive new number is published': async (bench) => {
      expect(await adding(bench, 3, 1)).toBe(1);
      expect(await adding(bench, -4, 2)).toBe(1);
      expect(await free(bench)).toBe('-1');
      expect(await bench.published()).toEqual(message(bench, '3'));
    },
    'no permits create a semaphore without permits, and a string that is no number is refused': async (bench) => {
      expect(await adding(bench, 0, 1)).toBe(1);
      expect(await free(bench)).toBe('0');
      await admin().set(bench.name, 'hello');
      await expect(adding(bench, 0, 2)).rejects.toThrow('not an integer');
      expect(await free(bench)).toBe('hello');
    },
    'a missing semaphore has its declared number before': async (bench) => {
      expect(await adding(bench, -2, 1, 5)).toBe(1);
      expect(await free(bench)).toBe('3');
    },
  },
  n: {
    'R1: a repeat adds nothing again': async (bench) => {
      await adding(bench, 2, 1);
      expect(await adding(bench, 2, 1)).toBe(1);
      expect(await free(bench)).toBe('2');
    },
  },
  '-3': {
    'too late: nothing is added': async (bench) => {
      expect(await adding(bench, 2, 1, -1, await bench.notAfter(-1))).toBe(-3);
      expect(await free(bench)).toBeNull();
    },
  },
  '-4': {
    'cancelled or overtaken: nothing is added': async (bench) => {
      await lane(bench, '2:-4');
      expect(await adding(bench, 2, 1)).toBe(-4);
      expect(await free(bench)).toBeNull();
    },
  },
});

/* Redis has lost the count of 5 permits, for example by eviction. `a` and `b` are taken; the lease of `c` has ended. */
describe('a semaphore whose count Redis has lost', () => {
  const PERMITS = 5;
  let bench: OpenBench;
  beforeEach(async () => {
    bench = await openBench(count.script!.source);
    await has(bench, 'a', Infinity);
    await has(bench, 'b', 60_000);
    await has(bench, 'c', -1);
  });
  afterEach(() => bench.close());

  /** A call, with the number that its handle declares, and the count after it: with that number, and without one. */
  type Row = [string, (declared: number) => Promise<unknown>, known: string | null, unknown: string | null];
  const rows: Row[] = [
    ['a release', (declared) => giving(bench, 'a', declared), '4', null],
    ['a hand-over', (declared) => exchangingFor(bench, 20_000, -1, [['d', 'ab']], declared), '3', null],
    ['a count', (declared) => counting(bench, declared), '3', null],
    ['a read of a lease', (declared) => asking(bench, 'a', declared), '3', null],
    ['a new lease', (declared) => updating(bench, 'a', 60_000, 0, declared), '3', null],
    ['a call for permits', (declared) => taking(bench, -1, 'd', 0, declared), '2', null],
    // The lease that has ended counts until a script frees its permit.
    ['more permits', (declared) => adding(bench, 2, 1, declared), '4', '2'],
    ['the total number', () => setting(bench, PERMITS, 1), '2', '2'],
    ['the first number', () => trying(bench, PERMITS, 1), '2', '2'],
  ];

  test.each(rows)('%s counts the permits that are taken', async (_, call, known) => {
    await call(PERMITS);
    expect(await free(bench)).toBe(known);
  });

  test.each(rows)('%s lets the count expire together with the permits that are taken', async (_, call) => {
    await admin().pexpire(takenPermitsKey(bench.name), 60_000);
    await call(PERMITS);
    const [ofCount, ofTaken] = await Promise.all(
      [bench.name, takenPermitsKey(bench.name)].map((key) => admin().pttl(key)),
    );
    expect(ofCount).toEqual(between(59_000, 60_000));
    expect(ofTaken).toEqual(between(59_000, 60_000));
  });

  test('a call for permits of a handle that declares no number takes not even those whose leases have ended', async () => {
    expect(await taking(bench, -1, 'd')).toEqual([-1, 1, between(59_000, 60_000)]);
    expect(await left(bench, 'd')).toBeUndefined();
  });

  test.each(rows)('%s of a handle that declares no number leaves the count to others', async (_, call, __, unknown) => {
    await call(-1);
    expect(await free(bench)).toBe(unknown);
  });
});

test('a semaphore whose taken permits Redis has lost keeps its count, and their releases find nothing', async () => {
  const bench = await openBench(count.script!.source);
  await admin().set(bench.name, '3');
  for (const declared of [-1, 5]) {
    expect(await giving(bench, 'a', declared)).toBe(0);
    expect(await exchangingFor(bench, 20_000, -1, [['d', 'a']], declared)).toEqual([0]);
    expect(await counting(bench, declared)).toEqual([1, 3, 0]);
    expect(await asking(bench, 'a', declared)).toBe(-2);
    expect(await updating(bench, 'a', 60_000, 0, declared)).toBe(0);
  }
  // Only the user knows the total number.
  expect(await setting(bench, 5, 1)).toBe(1);
  expect(await free(bench)).toBe('5');
  await bench.close();
});

test('a semaphore that is not there is created by no read and no release', async () => {
  const bench = await openBench(count.script!.source);
  for (const declared of [-1, 5]) {
    expect(await giving(bench, 'a', declared)).toBe(0);
    expect(await exchangingFor(bench, 20_000, -1, [['d', 'a']], declared)).toEqual([0]);
    expect(await counting(bench, declared)).toEqual([0, 0, 0]);
    expect(await asking(bench, 'a', declared)).toBe(-2);
    expect(await updating(bench, 'a', 60_000, 0, declared)).toBe(0);
  }
  expect(await bench.state()).toEqual({});
  await bench.close();
});
