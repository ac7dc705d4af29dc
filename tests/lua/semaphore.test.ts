import { expect } from '@jest/globals';
import { requestsKey, semaphoreChannel } from '../../src/redis/keys.js';
import { cancel as cancelRequest } from '../../src/redis/scripts/request.js';
import { acquire, add, cancel, drain, release, trySet } from '../../src/redis/scripts/semaphore.js';
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
  (permits: number): Run =>
  (bench, sequence, notAfter = 0) =>
    run(acquire, two(bench), permits, 0, sequence, notAfter);
describeScript(acquire, {
  n: {
    'permits are taken, and the answer is what is left': async (bench) => {
      await admin().set(bench.name, '5', 'PX', 60_000);
      expect(await taking(3)(bench, 1, await bench.notAfter(5_000))).toBe(2);
      expect(await free(bench)).toBe('2');
      expect(await admin().pttl(bench.name)).toEqual(between(59_000, 60_000));
      expect(await stored(bench)).toBe('1:2');
      expect(await admin().pttl(lanes(bench))).toEqual(between(3_599_000, 3_600_000));
    },
    'R1: running twice takes once': repeated(taking(3), 2),
    'the last permit is taken: none is left': async (bench) => {
      await admin().set(bench.name, '3');
      expect(await taking(3)(bench, 1)).toBe(0);
    },
  },
  '-1': {
    'too few: none is taken, and the answer is stored, so that a copy takes nothing later': async (bench) => {
      await admin().set(bench.name, '2');
      expect(await taking(3)(bench, 1)).toBe(-1);
      await admin().set(bench.name, '5');
      expect(await taking(3)(bench, 1)).toBe(-1);
      expect(await free(bench)).toBe('5');
    },
    'no semaphore: none is made': async (bench) => {
      expect(await taking(1)(bench, 1)).toBe(-1);
      expect(await free(bench)).toBeNull();
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
  (permits: number, create = 1): Run =>
  (bench, sequence) =>
    run(release, two(bench), permits, create, 'PUBLISH', channel(bench), 0, sequence);
describeScript(release, {
  '1': {
    'permits come back, and the new number is published to more than one': async (bench) => {
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
    'below one nobody is told': async (bench) => {
      await admin().set(bench.name, '-3');
      expect(await giving(2)(bench, 1)).toBe(1);
      expect(await bench.published()).toEqual([]);
    },
  },
  '2': {
    'one client is subscribed: permits come back, and without a semaphore one is made': async (bench) => {
      expect(await giving(2)(bench, 1)).toBe(2);
      expect(await free(bench)).toBe('2');
      expect(await bench.published()).toEqual(message(bench, '2'));
    },
  },
  '0': {
    'only if it exists: nothing is made': async (bench) => {
      expect(await giving(2, 0)(bench, 1)).toBe(0);
      expect(await free(bench)).toBeNull();
      expect(await bench.published()).toEqual([]);
    },
  },
  n: { 'R1: running twice gives back once': repeated(giving(2), 1) },
  '-4': { 'overtaken: nothing is given back': old(giving(2)) },
});

const draining: Run = (bench, sequence, notAfter = 0) => run(drain, two(bench), 0, sequence, notAfter);
describeScript(drain, {
  n: {
    'all that are free are taken': async (bench) => {
      await admin().set(bench.name, '5');
      expect(await draining(bench, 1)).toBe(5);
      expect(await free(bench)).toBe('0');
    },
    'a repeat tells the same number': repeated(draining, 4),
    'R7: also of very many a repeat tells all, and all are given back': async (bench) => {
      const many = 999_999_999_999_999;
      await admin().set(bench.name, many);
      expect(await draining(bench, 1)).toBe(many);
      expect(await draining(bench, 1)).toBe(many);
      expect(await run(cancel, two(bench), -1, 'PUBLISH', channel(bench), 0, 1)).toBe(1);
      expect(await free(bench)).toBe(String(many));
    },
    'no semaphore, or fewer than none: nothing': async (bench) => {
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
  (permits: number): Run =>
  (bench, sequence, notAfter = 0) =>
    run(add, two(bench), permits, 'PUBLISH', channel(bench), 0, sequence, notAfter);
describeScript(add, {
  '1': {
    'the number changes both ways, and the new one is published while there are permits': async (bench) => {
      expect(await adding(3)(bench, 1)).toBe(1);
      expect(await adding(-4)(bench, 2)).toBe(1);
      expect(await free(bench)).toBe('-1');
      expect(await bench.published()).toEqual(message(bench, '3'));
    },
    'an expiry stays': async (bench) => {
      await admin().set(bench.name, '1', 'PX', 60_000);
      await adding(1)(bench, 1);
      expect(await admin().pttl(bench.name)).toEqual(between(59_000, 60_000));
    },
  },
  n: { 'running twice adds once': repeated(adding(2), 1) },
  '-3': { 'too late: nothing is added': late(adding(2)) },
  '-4': { 'cancelled or overtaken: nothing is added': old(adding(2)) },
});

const setting =
  (permits: number, ttl = -1): Run =>
  (bench, sequence, notAfter = 0) =>
    run(trySet, two(bench), permits, ttl, 'PUBLISH', channel(bench), 0, sequence, notAfter);
describeScript(trySet, {
  '1': {
    'a semaphore is made, for ever or for a time, and its permits are published': async (bench) => {
      expect(await setting(4)(bench, 1)).toBe(1);
      expect(await admin().pttl(bench.name)).toBe(-1);
      expect(await bench.published()).toEqual(message(bench, '4'));
      await admin().del(bench.name);
      expect(await setting(4, 60_000)(bench, 2)).toBe(1);
      expect(await admin().pttl(bench.name)).toEqual(between(59_000, 60_000));
    },
  },
  '0': {
    'one that exists is left alone': async (bench) => {
      await admin().set(bench.name, '1');
      expect(await setting(4)(bench, 1)).toBe(0);
      expect(await free(bench)).toBe('1');
    },
  },
  n: { 'running twice makes it once, and says so twice': repeated(setting(4), 1) },
  '-3': { 'too late: nothing is made': late(setting(4)) },
  '-4': { 'cancelled or overtaken: nothing is made': old(setting(4)) },
});

const cancelling =
  (permits: number): Run =>
  (bench, sequence) =>
    run(cancel, two(bench), permits, 'PUBLISH', channel(bench), 0, sequence);
describeScript(cancel, {
  '1': {
    'what had been taken is given back once': async (bench) => {
      await admin().set(bench.name, '5');
      await taking(3)(bench, 1);
      expect(await cancelling(3)(bench, 1)).toBe(1);
      expect(await cancelling(3)(bench, 1)).toBe(0);
      expect(await free(bench)).toBe('5');
      expect(await bench.published()).toEqual(message(bench, '5'));
    },
    'what had been drained is given back': async (bench) => {
      await admin().set(bench.name, '5');
      await draining(bench, 1);
      expect(await cancelling(-1)(bench, 1)).toBe(1);
      expect(await free(bench)).toBe('5');
    },
  },
  '0': {
    'R2: a request that has not come yet takes nothing when it comes': async (bench) => {
      await admin().set(bench.name, '5');
      expect(await cancelling(3)(bench, 1)).toBe(0);
      expect(await taking(3)(bench, 1)).toBe(-4);
      expect(await free(bench)).toBe('5');
    },
    'one that found too few has nothing to give back': async (bench) => {
      await admin().set(bench.name, '2');
      await taking(3)(bench, 1);
      expect(await cancelling(3)(bench, 1)).toBe(0);
      expect(await free(bench)).toBe('2');
    },
    'a later request of the lane is not touched': async (bench) => {
      await admin().set(bench.name, '5');
      await taking(3)(bench, 2);
      expect(await cancelling(3)(bench, 1)).toBe(0);
      expect(await free(bench)).toBe('2');
    },
  },
});

describeScript(cancelRequest, {
  '1': {
    'what had run stays': async (bench) => {
      await adding(2)(bench, 1);
      expect(await run(cancelRequest, [lanes(bench)], 0, 1)).toBe(1);
      expect(await free(bench)).toBe('2');
      expect(await adding(2)(bench, 1)).toBe(1);
      expect(await free(bench)).toBe('2');
    },
  },
  '0': {
    'what has not run never will': async (bench) => {
      expect(await run(cancelRequest, [lanes(bench)], 0, 1)).toBe(0);
      expect(await adding(2)(bench, 1)).toBe(-4);
      expect(await free(bench)).toBeNull();
    },
    'a later request of the lane is not touched': async (bench) => {
      await adding(2)(bench, 2);
      expect(await run(cancelRequest, [lanes(bench)], 0, 1)).toBe(0);
      expect(await stored(bench)).toBe('2:1');
    },
  },
});
