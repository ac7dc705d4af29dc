import { afterEach, expect, jest, test } from '@jest/globals';
import { AsyncLocalStorage, executionAsyncResource } from 'node:async_hooks';
import type * as Flow from '../../src/ownership/flow.js';

const SHARED = Symbol.for('holdfast.flow');

/** Another copy of the module, as `require` beside `import` makes one. */
async function copyOfFlow(): Promise<typeof Flow> {
  jest.resetModules();
  return import('../../src/ownership/flow.js');
}

afterEach(() => void jest.restoreAllMocks());

test('a copy with another format of its list shares nothing and warns once', async () => {
  const foreign = { version: 0, storage: { getStore: () => [{ open: true }] } };
  Object.defineProperty(globalThis, SHARED, { value: foreign, configurable: true });
  const warned = jest.spyOn(process, 'emitWarning').mockReturnValue();
  const flow = await copyOfFlow();
  expect(flow.currentHolds()).toEqual([]);
  const hold = { open: true };
  expect(flow.runInside(hold, flow.currentHolds)).toEqual([hold]);
  expect(warned.mock.calls).toEqual([[expect.stringMatching(/format 0.*format 1/), { code: 'HOLDFAST_VERSIONS' }]]);
  Reflect.deleteProperty(globalThis, SHARED);
});

test('copies with the same format are inside the same holds and do not warn', async () => {
  const warned = jest.spyOn(process, 'emitWarning').mockReturnValue();
  const [one, other] = [await copyOfFlow(), await copyOfFlow()];
  expect(one.runInside).not.toBe(other.runInside);
  const [outer, inner] = [{ open: true }, { open: true }];
  one.runInside(outer, () => {
    expect(other.currentHolds()).toEqual([outer]);
    other.runInside(inner, () => expect(one.currentHolds()).toEqual([outer, inner]));
    other.runOutside(() => expect(one.currentHolds()).toEqual([]));
  });
  expect(warned).not.toHaveBeenCalled();
});

test('holds are listed outermost first, each once, and the next entry drops closed ones', async () => {
  const { currentHolds, runInside } = await copyOfFlow();
  const [a, b, c] = [{ open: true }, { open: true }, { open: true }];
  runInside(a, () =>
    runInside(b, () => {
      expect(currentHolds()).toEqual([a, b]);
      expect(runInside(a, currentHolds)[0]).toBe(a);
      expect(runInside(a, currentHolds)).toHaveLength(2);
      a.open = false;
      expect(currentHolds()).toHaveLength(2);
      const holds = runInside(c, currentHolds);
      expect(holds[0]).toBe(b);
      expect(holds[1]).toBe(c);
      expect(runInside(a, currentHolds)).toHaveLength(1);
    }),
  );
  expect(currentHolds()).toEqual([]);
});

test('code run outside sees no hold at any depth, and the caller keeps its holds', async () => {
  const { currentHolds, runInside, runOutside } = await copyOfFlow();
  const [around, started] = [{ open: true }, { open: true }];
  await runInside(around, async () => {
    const outside = runOutside(async () => {
      await Promise.resolve();
      expect(currentHolds()).toEqual([]);
      return runInside(started, currentHolds);
    });
    expect(currentHolds()).toEqual([around]);
    const seen = await outside;
    expect(seen).toHaveLength(1);
    expect(seen[0]).toBe(started);
    expect(currentHolds()[0]).toBe(around);
  });
});

test('if the store is kept on a resource, a hold is entered only by the named continuation', async () => {
  const { currentHolds, enter } = await copyOfFlow();
  const mark = {};
  const keptOnResource = new AsyncLocalStorage().run(mark, () =>
    Reflect.ownKeys(executionAsyncResource()).some((key) => Reflect.get(executionAsyncResource(), key) === mark),
  );
  const [hold, other] = [{ open: true }, { open: true }];
  const seen = await new Promise((resolve) => {
    setImmediate(() => {
      enter(executionAsyncResource(), hold);
      enter({}, other);
      resolve([...currentHolds()]);
    });
  });
  expect(seen).toHaveLength(keptOnResource ? 1 : 2);
  expect(currentHolds()).toEqual([]);
});

test('in a runtime without AsyncLocalStorage everything is outside and still runs', async () => {
  jest.resetModules();
  jest.unstable_mockModule('node:async_hooks', () => ({ default: {} }));
  const { currentHolds, runInside, runOutside } = await import('../../src/ownership/flow.js');
  expect(runInside({ open: true }, () => currentHolds().length)).toBe(0);
  expect(runOutside(() => 'ran')).toBe('ran');
});
