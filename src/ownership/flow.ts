import * as asyncHooks from 'node:async_hooks';

/*
 * Which holds the running code is inside of. The list travels with the flow in an AsyncLocalStorage and is never
 * changed: who enters a hold gets a new list, with the closed ones left out, so that a flow which goes from hold to
 * hold for ever drags nothing along.
 */

/** What the list names: a hold that is around its flow until it is given back, also when it has been lost. */
export interface FlowHold {
  readonly open: boolean;
  /** The holds that it is made of: who is inside of it is inside of each. */
  readonly members?: readonly FlowHold[];
}

type Holds = readonly FlowHold[];

interface SharedFlow {
  readonly version: number;
  readonly storage: asyncHooks.AsyncLocalStorage<Holds>;
}

/** Goes up whenever a copy of another age could misread what this one keeps in the storage. */
const FORMAT_VERSION = 1;
const SHARED = Symbol.for('holdfast.flow');
const NONE: Holds = Object.freeze([]);

// A runtime may lack parts of node:async_hooks; a named import of one would keep the module from loading there.
const { AsyncLocalStorage, executionAsyncResource } = asyncHooks as Partial<typeof asyncHooks>;
const storage = sharedStorage();

/**
 * Node without AsyncContextFrame keeps the current store on the resource object of the running callback: to change the
 * store is to change that object, whichever it is.
 */
const keepsStoreOnResource = runOutside(() => {
  const resource = executionAsyncResource?.();
  return resource !== undefined && Reflect.ownKeys(resource).some((key) => Reflect.get(resource, key) === NONE);
});

/** The holds the calling code is inside of, outermost first. Some may have been closed since. */
export function currentHolds(): readonly FlowHold[] {
  return storage?.getStore() ?? NONE;
}

/** Runs `fn` inside `hold`, which is open, in addition to the open holds around the caller. */
export function runInside<H extends FlowHold, T>(hold: H, fn: (hold: H) => T): T {
  return storage === undefined ? fn(hold) : storage.run(openHoldsAnd(hold), fn, hold);
}

/** Runs `fn` inside of the holds that another flow was inside of, which `currentHolds()` named there. */
export function runAmong<T>(holds: readonly FlowHold[], fn: () => T): T {
  return storage === undefined ? fn() : storage.run(holds, fn);
}

/** Runs `fn` outside of every hold: what it starts belongs to nobody who happened to start it. */
export function runOutside<T>(fn: () => T): T {
  return storage === undefined ? fn() : storage.run(NONE, fn);
}

/**
 * Puts the running code inside `hold` until its flow ends, provided that it is the continuation which runs as
 * `continuation`: in anybody else's code this would put that code's callers inside too.
 */
export function enter(continuation: object, hold: FlowHold): void {
  if (keepsStoreOnResource && executionAsyncResource?.() !== continuation) return;
  storage?.enterWith(openHoldsAnd(hold));
}

function openHoldsAnd(hold: FlowHold): Holds {
  const around = currentHolds();
  if (around.length === 0) return hold.open ? [hold] : NONE;
  const holds = around.filter(({ open }) => open);
  if (hold.open && !holds.includes(hold)) holds.push(hold);
  return holds;
}

/** An `import` and a `require` of the package are two copies of it; a flow is one for both. */
function sharedStorage(): SharedFlow['storage'] | undefined {
  if (AsyncLocalStorage === undefined) return undefined;
  const shared = (globalThis as { [SHARED]?: SharedFlow })[SHARED];
  if (shared?.version === FORMAT_VERSION) return shared.storage;
  const own = new AsyncLocalStorage<Holds>();
  if (shared === undefined) {
    const value: SharedFlow = { version: FORMAT_VERSION, storage: own };
    Object.defineProperty(globalThis, SHARED, { value });
  } else {
    process.emitWarning(
      `another copy of holdfast in this process tracks holds in format ${shared.version}, this one in format ` +
        `${FORMAT_VERSION}: a hold of one is not seen by the other. Install one version.`,
      { code: 'HOLDFAST_VERSIONS' },
    );
  }
  return own;
}
