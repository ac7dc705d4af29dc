import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import * as v8 from 'node:v8';
import type * as BoundPromises from '../../src/ownership/bound-promise.js';
import type * as Flow from '../../src/ownership/flow.js';

type Library = typeof BoundPromises & typeof Flow;
type Hooks = Partial<Pick<typeof v8.promiseHooks, 'onInit' | 'onBefore'>>;

/** The hooks that are enabled now. */
let on: { init: number; before: number };

/** As Node's own, and counted. */
const counted: Hooks = {
  onInit(hook) {
    on.init += 1;
    const stop = v8.promiseHooks.onInit(hook) as () => void;
    return () => {
      on.init -= 1;
      stop();
    };
  },
  onBefore(hook) {
    on.before += 1;
    const stop = v8.promiseHooks.onBefore(hook) as () => void;
    return () => {
      on.before -= 1;
      stop();
    };
  },
};

async function load(promiseHooks: Hooks | undefined): Promise<Library> {
  jest.resetModules();
  jest.unstable_mockModule('node:v8', () => ({ default: {}, promiseHooks }));
  return {
    ...(await import('../../src/ownership/flow.js')),
    ...(await import('../../src/ownership/bound-promise.js')),
  };
}

const turn = (): Promise<void> => new Promise((resume) => setImmediate(resume));

describe('where promises can be bound', () => {
  let library: Library;
  beforeEach(async () => {
    on = { init: 0, before: 0 };
    library = await load(counted);
  });
  afterEach(() => {
    expect(on).toEqual({ init: 0, before: 0 });
    expect(library.currentHolds()).toEqual([]);
  });

  test('the code that awaited is inside the hold, its caller and its siblings are not', async () => {
    const { boundDeferred, currentHolds } = library;
    const hold = { open: true };
    const deferred = boundDeferred<string>();
    const taker = async (): Promise<unknown> => [await deferred.promise, [...currentHolds()]];
    const bystander = async (): Promise<unknown> => {
      await turn();
      return [...currentHolds()];
    };
    const flows = [taker(), bystander()];
    deferred.resolve('answer', hold);
    expect(currentHolds()).toEqual([]);
    expect(await Promise.all(flows)).toEqual([['answer', [hold]], []]);
    expect(currentHolds()).toEqual([]);
  });

  test('hooks are enabled only for a moment at the await and before the continuation, never during the wait', async () => {
    const { boundDeferred, currentHolds } = library;
    const hold = { open: true };
    const deferred = boundDeferred<undefined>();
    const { promise } = deferred;
    expect(on).toEqual({ init: 0, before: 0 });
    const taker = async (): Promise<void> => {
      await promise;
      expect(on).toEqual({ init: 0, before: 0 });
      expect(currentHolds()).toEqual([hold]);
    };
    const taking = taker();
    expect(on).toEqual({ init: 0, before: 0 });
    await turn();
    expect(on).toEqual({ init: 0, before: 0 });
    deferred.resolve(undefined, hold);
    expect(on).toEqual({ init: 0, before: 1 });
    await taking;
  });

  test('a read of the constructor of a promise leaves no hook enabled beyond the next promise', async () => {
    const { boundDeferred, currentHolds } = library;
    const looked = boundDeferred<undefined>();
    expect(looked.promise.constructor).toBe(Promise);
    expect(on.init).toBe(1);
    await Promise.resolve();
    expect(on.init).toBe(0);
    looked.resolve(undefined, { open: true });
    await turn();
    expect(currentHolds()).toEqual([]);
  });

  test('a bound promise is a native promise', async () => {
    const deferred = library.boundDeferred<number>();
    const { promise } = deferred;
    expect(promise).toBeInstanceOf(Promise);
    expect(Promise.resolve(promise)).toBe(promise);
    expect(Object.prototype.toString.call(promise)).toBe('[object Promise]');
    expect(Object.keys(promise)).toEqual([]);
    deferred.resolve(5);
    expect(await promise).toBe(5);
  });

  test('nothing is entered without a hold, or with one that is closed before the code continues', async () => {
    const { boundDeferred, currentHolds } = library;
    const [busy, late] = [boundDeferred<boolean>(), boundDeferred<boolean>()];
    const flow = async (promise: Promise<boolean>): Promise<unknown> => [await promise, currentHolds().length];
    const flows = [flow(busy.promise), flow(late.promise)];
    const hold = { open: true };
    busy.resolve(false);
    late.resolve(true, hold);
    hold.open = false;
    expect(await Promise.all(flows)).toEqual([
      [false, 0],
      [true, 0],
    ]);
  });

  test('only the first resolution counts, for the value and for the hold', async () => {
    const { boundDeferred, currentHolds } = library;
    const [first, second] = [{ open: true }, { open: true }];
    const deferred = boundDeferred<string>();
    deferred.resolve('first', first);
    deferred.resolve('second', second);
    deferred.reject(new Error('third'));
    const flow = async (): Promise<unknown> => [await deferred.promise, currentHolds()[0] === first];
    expect(await flow()).toEqual(['first', true]);
  });

  test('a handler and the code that awaits its result are inside, also after a failure', async () => {
    const { boundDeferred, currentHolds } = library;
    const flow = async (fails: boolean): Promise<number[]> => {
      const deferred = boundDeferred<undefined>();
      setImmediate(() => deferred.resolve(undefined, { open: true }));
      const seen: number[] = [];
      const handled = deferred.promise.then(() => {
        seen.push(currentHolds().length);
        if (fails) throw new Error('in the handler');
      });
      await handled.then(undefined, () => seen.push(currentHolds().length));
      seen.push(currentHolds().length);
      return seen;
    };
    expect(await flow(false)).toEqual([1, 1]);
    expect(await flow(true)).toEqual([1, 1, 1]);
  });

  test('a refused argument rejects and enters nothing', async () => {
    const refused = new Error('refused');
    await expect(library.boundRejection(refused)).rejects.toBe(refused);
  });

  test('the self-test passes, runs once, uses no timers, and does not move its caller', async () => {
    const { currentHolds, runInside, supportsBoundPromises } = library;
    const hold = { open: true };
    jest.useFakeTimers();
    try {
      await runInside(hold, async () => {
        const [one, other] = [supportsBoundPromises(), supportsBoundPromises()];
        expect(one).toBe(other);
        expect(currentHolds()).toEqual([hold]);
        expect(await one).toBe(true);
        expect(currentHolds()).toEqual([hold]);
      });
    } finally {
      jest.useRealTimers();
    }
    expect(supportsBoundPromises()).toBe(true);
  });
});

describe('where promises cannot be bound', () => {
  const somebodyElses = Promise.resolve();
  const noHook = (): (() => void) => () => undefined;
  const strangers: Record<string, Hooks | undefined> = {
    'there are no promise hooks': undefined,
    'hooks are never called': { onInit: noHook, onBefore: noHook },
    'only the first hook is called': { ...v8.promiseHooks, onBefore: noHook },
    'hooks throw when they are set': {
      onInit() {
        throw new Error('not implemented');
      },
    },
    'the hook names a promise that is not the continuation': {
      onInit: (hook) => v8.promiseHooks.onInit((_, parent) => hook(somebodyElses, parent)),
      onBefore: (hook) => v8.promiseHooks.onBefore(hook),
    },
  };

  test.each(Object.keys(strangers))('%s: the self-test reports it, and a hold is never entered', async (why) => {
    const { boundDeferred, boundRejection, currentHolds, supportsBoundPromises } = await load(strangers[why]);
    expect(await supportsBoundPromises()).toBe(false);
    expect(supportsBoundPromises()).toBe(false);
    const deferred = boundDeferred<number>();
    setImmediate(() => deferred.resolve(1, { open: true }));
    const flow = async (): Promise<unknown> => [await deferred.promise, await deferred.promise.then(currentHolds)];
    expect(await flow()).toEqual([1, []]);
    const refused = new Error('refused');
    await expect(boundRejection(refused)).rejects.toBe(refused);
  });
});
