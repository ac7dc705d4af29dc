import { expect } from '@jest/globals';
import { requestsKey, semaphoreChannel } from '../../src/redis/keys.js';
import { cancel as cancelRequest } from '../../src/redis/scripts/request.js';
import { acquire, add, cancel, drain, expire, release, remove, trySet } from '../../src/redis/scripts/semaphore.js';
import { admin } from '../support/redis.js';
import { between, describeScript, type ScriptBench } from './script-bench.js';

const lanes = ({ name }: ScriptBench): string => requestsKey(name, 'client');
const two = (bench: ScriptBench) => [bench.name, lanes(bench)];
const channel = ({ name }: ScriptBench): string => semaphoreChannel(name);

const free = ({ name }: ScriptBench) => admin().get(name);
const stored = (bench: ScriptBench, lane = '0') => admin().hget(lanes(bench), lane);
const message = ({ name }: ScriptBench, payload: string) => [{ channel: semaphoreChannel(name), payload }];

/** Any of the scripts, not only the one that is described. */
const run = ({ script }: { script: { source: string } | undefined }, keys: string[], ...args: (string | number)[]) =>
  admin().eval(script!.source, keys.length, ...keys, ...args);

type Run = (bench: ScriptBench, sequence: number, notAfter?: number) => Promise<unknown>;

/** A repeat gets the stored answer and changes nothing; an older or cancelled request changes nothing either. */
function old(request: Run): (bench: ScriptBench) => Promise<void> {
  return async (bench) => {
    await admin().set(bench.name, '5');
    await admin().hset(lanes(bench), '0', '7:1');
    expect(await request(bench, 6)).toBe(-4);
    await admin().hset(lanes(bench), '0', '8:-4');
    expect(await request(bench, 8)).toBe(-4);
    expect(await free(bench)).toBe('5');
    expect(await bench.published()).toEqual([]);
  };
}
function repeated(request: Run, answer: number): (bench: ScriptBench) => Promise<void> {
  return async (bench) => {
    await admin().set(bench.name, '5');
    await admin().hset(lanes(bench), '0', `7:${answer}`);
    expect(await request(bench, 7)).toBe(answer);
    expect(await free(bench)).toBe('5');
    expect(await bench.published()).toEqual([]);
  };
}
function late(request: Run): (bench: ScriptBench) => Promise<void> {
  return async (bench) => {
    await admin().set(bench.name, '5');
    expect(await request(bench, 1, await bench.notAfter(-1))).toBe(-3);
    expect(await free(bench)).toBe('5');
    expect(await stored(bench)).toBeNull();
  };
}

const taking =
  (permits: number, declared = -1): Run =>
  (bench, sequence, notAfter = 0) =>
    run(acquire, two(bench), permits, declared, 'PUBLISH', channel(bench), 0, sequence, notAfter);
describeScript(acquire, {
  n: {
    'permits are taken, and the remaining number is returned': async (bench) => {
      await admin().set(bench.name, '5', 'PX', 60_000);
      expect(await taking(3)(bench, 1, await bench.notAfter(5_000))).toBe(2);
      expect(await free(bench)).toBe('2');
      expect(await admin().pttl(bench.name)).toEqual(between(59_000, 60_000));
      expect(await stored(bench)).toBe('1:2');
      expect(await admin().pttl(lanes(bench))).toEqual(between(3_599_000, 3_600_000));
    },
    'R1: a repeat takes no further permits': repeated(taking(3), 2),
    'the last permit is taken, and 0 is returned': async (bench) => {
      await admin().set(bench.name, '3');
      expect(await taking(3)(bench, 1)).toBe(0);
    },
    'a missing semaphore is created with the declared number, and the permits that remain are published': async (
      bench,
    ) => {
      expect(await taking(3, 5)(bench, 1)).toBe(2);
      expect(await taking(3, 5)(bench, 1)).toBe(2);
      expect(await free(bench)).toBe('2');
      expect(await bench.published()).toEqual(message(bench, '2'));
      expect(await taking(2, 5)(bench, 2)).toBe(0);
    },
    'R7: a very large declared number is stored exactly': async (bench) => {
      expect(await taking(1, Number.MAX_SAFE_INTEGER)(bench, 1)).toBe(Number.MAX_SAFE_INTEGER - 1);
      expect(await free(bench)).toBe(String(Number.MAX_SAFE_INTEGER - 1));
    },
  },
  '-1': {
    'with too few permits none is taken, and a later copy takes none either': async (bench) => {
      await admin().set(bench.name, '2');
      expect(await taking(3)(bench, 1)).toBe(-1);
      await admin().set(bench.name, '5');
      expect(await taking(3)(bench, 1)).toBe(-1);
      expect(await free(bench)).toBe('5');
    },
    'a missing semaphore with a declared number is created, also if the number is too small': async (bench) => {
      expect(await taking(3, 2)(bench, 1)).toBe(-1);
      expect(await free(bench)).toBe('2');
      expect(await bench.published()).toEqual(message(bench, '2'));
      await admin().del(bench.name);
      expect(await taking(1, 0)(bench, 2)).toBe(-1);
      expect(await free(bench)).toBe('0');
    },
  },
  '-2': {
    'a missing semaphore without a declared number is not created': async (bench) => {
      expect(await taking(1)(bench, 1)).toBe(-2);
      expect(await free(bench)).toBeNull();
      await admin().set(bench.name, '5');
      expect(await taking(1)(bench, 1)).toBe(-2);
      expect(await free(bench)).toBe('5');
    },
  },
  WRONGTYPE: {
    'a string that is not a number stays as it is': async (bench) => {
      await admin().set(bench.name, 'hello');
      await expect(taking(1)(bench, 1)).rejects.toThrow(/^WRONGTYPE .* not a count/);
      expect(await admin().get(bench.name)).toBe('hello');
      expect(await bench.published()).toEqual([]);
    },
  },
  '-3': { 'too late: nothing is taken': late(taking(1)) },
  '-4': { 'cancelled or overtaken: nothing is taken': old(taking(1)) },
});

const giving =
  (permits: number, missing = permits): Run =>
  (bench, sequence) =>
    run(release, two(bench), permits, missing, 'PUBLISH', channel(bench), 0, sequence);
describeScript(release, {
  '1': {
    'permits are released, and the new number is published to several subscribers': async (bench) => {
      await admin().set(bench.name, '1');
      const other = admin().duplicate();
      try {
        await other.subscribe(channel(bench)); // the bench is subscribed as well
        expect(await giving(2)(bench, 1)).toBe(1);
      } finally {
        await other.quit();
      }
      expect(await free(bench)).toBe('3');
      expect(await bench.published()).toEqual(message(bench, '3'));
    },
    'a number below one is not published': async (bench) => {
      await admin().set(bench.name, '-3');
      expect(await giving(2)(bench, 1)).toBe(1);
      expect(await bench.published()).toEqual([]);
    },
  },
  '2': {
    'with one subscribed client permits are released': async (bench) => {
      await admin().set(bench.name, '0');
      expect(await giving(2, 7)(bench, 1)).toBe(2);
      expect(await free(bench)).toBe('2');
      expect(await bench.published()).toEqual(message(bench, '2'));
    },
  },
  '3': {
    'a missing semaphore is created, and a repeat replies the same': async (bench) => {
      expect(await giving(2, 7)(bench, 1)).toBe(3);
      expect(await giving(2, 7)(bench, 1)).toBe(3);
      expect(await free(bench)).toBe('7');
      expect(await bench.published()).toEqual(message(bench, '7'));
    },
  },
  '0': {
    'a missing semaphore is not created if only an existing one may change': async (bench) => {
      expect(await giving(2, -1)(bench, 1)).toBe(0);
      expect(await free(bench)).toBeNull();
      expect(await bench.published()).toEqual([]);
    },
  },
  n: { 'R1: a repeat releases nothing again': repeated(giving(2), 1) },
  '-4': { 'overtaken: nothing is released': old(giving(2)) },
});

const drainingOf =
  (declared: number): Run =>
  (bench, sequence, notAfter = 0) =>
    run(drain, two(bench), declared, 0, sequence, notAfter);
const draining = drainingOf(-1);
describeScript(drain, {
  n: {
    'all free permits are taken': async (bench) => {
      await admin().set(bench.name, '5');
      expect(await draining(bench, 1)).toBe(5);
      expect(await free(bench)).toBe('0');
    },
    'a repeat returns the same number': repeated(draining, 4),
    'the declared permits of a missing semaphore are taken': async (bench) => {
      expect(await drainingOf(4)(bench, 1)).toBe(4);
      expect(await drainingOf(4)(bench, 1)).toBe(4);
      expect(await free(bench)).toBe('0');
    },
    'R7: a repeat returns a very large number exactly, and exactly that number is released': async (bench) => {
      const many = 999_999_999_999_999;
      await admin().set(bench.name, many);
      expect(await draining(bench, 1)).toBe(many);
      expect(await draining(bench, 1)).toBe(many);
      expect(await run(cancel, two(bench), -1, 'PUBLISH', channel(bench), 0, 1)).toBe(1);
      expect(await free(bench)).toBe(String(many));
    },
    'a missing or negative semaphore gives 0': async (bench) => {
      expect(await draining(bench, 1)).toBe(0);
      await admin().set(bench.name, '-2');
      expect(await draining(bench, 2)).toBe(0);
      expect(await free(bench)).toBe('-2');
    },
  },
  WRONGTYPE: {
    'a string that is not a number stays as it is': async (bench) => {
      await admin().set(bench.name, 'hello');
      await expect(draining(bench, 1)).rejects.toThrow(/^WRONGTYPE .* not a count/);
      expect(await admin().get(bench.name)).toBe('hello');
    },
  },
  '-3': { 'too late: nothing is taken': late(draining) },
  '-4': { 'cancelled or overtaken: nothing is taken': old(draining) },
});

const adding =
  (permits: number, declared = 0): Run =>
  (bench, sequence, notAfter = 0) =>
    run(add, two(bench), permits, declared, 'PUBLISH', channel(bench), 0, sequence, notAfter);
describeScript(add, {
  '1': {
    'the number changes in both directions, and a positive new number is published': async (bench) => {
      expect(await adding(3)(bench, 1)).toBe(1);
      expect(await adding(-4)(bench, 2)).toBe(1);
      expect(await free(bench)).toBe('-1');
      expect(await bench.published()).toEqual(message(bench, '3'));
    },
    'a missing semaphore has its declared number before': async (bench) => {
      expect(await adding(-2, 5)(bench, 1)).toBe(1);
      expect(await free(bench)).toBe('3');
      expect(await bench.published()).toEqual(message(bench, '3'));
    },
    'an expiry stays': async (bench) => {
      await admin().set(bench.name, '1', 'PX', 60_000);
      await adding(1)(bench, 1);
      expect(await admin().pttl(bench.name)).toEqual(between(59_000, 60_000));
    },
  },
  n: { 'a repeat adds nothing again': repeated(adding(2), 1) },
  '-3': { 'too late: nothing is added': late(adding(2)) },
  '-4': { 'cancelled or overtaken: nothing is added': old(adding(2)) },
});

const setting =
  (permits: number, ttl = -1): Run =>
  (bench, sequence, notAfter = 0) =>
    run(trySet, two(bench), permits, ttl, 'PUBLISH', channel(bench), 0, sequence, notAfter);
describeScript(trySet, {
  '1': {
    'a semaphore is created, with or without an expiry, and its permits are published': async (bench) => {
      expect(await setting(4)(bench, 1)).toBe(1);
      expect(await admin().pttl(bench.name)).toBe(-1);
      expect(await bench.published()).toEqual(message(bench, '4'));
      await admin().del(bench.name);
      expect(await setting(4, 60_000)(bench, 2)).toBe(1);
      expect(await admin().pttl(bench.name)).toEqual(between(59_000, 60_000));
    },
  },
  '0': {
    'an existing semaphore is not changed': async (bench) => {
      await admin().set(bench.name, '1');
      expect(await setting(4)(bench, 1)).toBe(0);
      expect(await free(bench)).toBe('1');
    },
  },
  n: { 'a repeat creates nothing again and replies the same': repeated(setting(4), 1) },
  '-3': { 'too late: nothing is created': late(setting(4)) },
  '-4': { 'cancelled or overtaken: nothing is created': old(setting(4)) },
});

const removing: Run = (bench, sequence, notAfter = 0) =>
  run(remove, two(bench), 'PUBLISH', channel(bench), 0, sequence, notAfter);
describeScript(remove, {
  '1': {
    'the semaphore is deleted, and a message wakes its waiters': async (bench) => {
      await admin().set(bench.name, '-2');
      expect(await removing(bench, 1)).toBe(1);
      expect(await free(bench)).toBeNull();
      expect(await bench.published()).toEqual(message(bench, '1'));
    },
  },
  '0': {
    'a semaphore that does not exist publishes nothing': async (bench) => {
      expect(await removing(bench, 1)).toBe(0);
      expect(await bench.published()).toEqual([]);
    },
  },
  n: { 'a repeat deletes nothing again': repeated(removing, 1) },
  WRONGTYPE: {
    'a string that is not a number stays as it is': async (bench) => {
      await admin().set(bench.name, 'hello');
      await expect(removing(bench, 1)).rejects.toThrow(/^WRONGTYPE .* not a count/);
      expect(await free(bench)).toBe('hello');
    },
  },
  '-3': { 'too late: nothing is deleted': late(removing) },
  '-4': { 'cancelled or overtaken: nothing is deleted': old(removing) },
});

const expiring: Run = (bench, sequence, notAfter = 0) => run(expire, two(bench), 60_000, 0, sequence, notAfter);
describeScript(expire, {
  '1': {
    'the semaphore expires after the time': async (bench) => {
      await admin().set(bench.name, '5');
      expect(await expiring(bench, 1)).toBe(1);
      expect(await admin().pttl(bench.name)).toEqual(between(59_000, 60_000));
    },
  },
  '0': {
    'a semaphore that does not exist is not created': async (bench) => {
      expect(await expiring(bench, 1)).toBe(0);
      expect(await free(bench)).toBeNull();
    },
  },
  n: { 'a repeat sets no expiry again': repeated(expiring, 1) },
  '-3': { 'too late: no expiry is set': late(expiring) },
  '-4': { 'cancelled or overtaken: no expiry is set': old(expiring) },
});

const cancelling =
  (permits: number): Run =>
  (bench, sequence) =>
    run(cancel, two(bench), permits, 'PUBLISH', channel(bench), 0, sequence);
describeScript(cancel, {
  '1': {
    'taken permits are released once': async (bench) => {
      await admin().set(bench.name, '5');
      await taking(3)(bench, 1);
      expect(await cancelling(3)(bench, 1)).toBe(1);
      expect(await cancelling(3)(bench, 1)).toBe(0);
      expect(await free(bench)).toBe('5');
      expect(await bench.published()).toEqual(message(bench, '5'));
    },
    'drained permits are released': async (bench) => {
      await admin().set(bench.name, '5');
      await draining(bench, 1);
      expect(await cancelling(-1)(bench, 1)).toBe(1);
      expect(await free(bench)).toBe('5');
    },
  },
  '0': {
    'a semaphore that was deleted meanwhile is not created again, and the request does not run later': async (
      bench,
    ) => {
      await admin().set(bench.name, '5');
      await taking(3)(bench, 1);
      await admin().del(bench.name);
      expect(await cancelling(3)(bench, 1)).toBe(0);
      expect(await free(bench)).toBeNull();
      expect(await taking(3)(bench, 1)).toBe(-4);
      expect(await bench.published()).toEqual([]);
    },
    'R2: a request that arrives after its cancellation takes nothing': async (bench) => {
      await admin().set(bench.name, '5');
      expect(await cancelling(3)(bench, 1)).toBe(0);
      expect(await taking(3)(bench, 1)).toBe(-4);
      expect(await free(bench)).toBe('5');
    },
    'a request that found too few permits has nothing to release': async (bench) => {
      await admin().set(bench.name, '2');
      await taking(3)(bench, 1);
      expect(await cancelling(3)(bench, 1)).toBe(0);
      expect(await free(bench)).toBe('2');
    },
    'a later request of the lane is not affected': async (bench) => {
      await admin().set(bench.name, '5');
      await taking(3)(bench, 2);
      expect(await cancelling(3)(bench, 1)).toBe(0);
      expect(await free(bench)).toBe('2');
    },
  },
});

describeScript(cancelRequest, {
  '1': {
    'the effect of a request that had run stays': async (bench) => {
      await adding(2)(bench, 1);
      expect(await run(cancelRequest, [lanes(bench)], 0, 1)).toBe(1);
      expect(await free(bench)).toBe('2');
      expect(await adding(2)(bench, 1)).toBe(1);
      expect(await free(bench)).toBe('2');
    },
  },
  '0': {
    'a request that has not run never runs': async (bench) => {
      expect(await run(cancelRequest, [lanes(bench)], 0, 1)).toBe(0);
      expect(await adding(2)(bench, 1)).toBe(-4);
      expect(await free(bench)).toBeNull();
    },
    'a later request of the lane is not affected': async (bench) => {
      await adding(2)(bench, 2);
      expect(await run(cancelRequest, [lanes(bench)], 0, 1)).toBe(0);
      expect(await stored(bench)).toBe('2:1');
    },
  },
});
