import { warn } from '../warn.js';
import * as asyncHooks from 'node:async_hooks';
import { types } from 'node:util';

/*
 * The holds that the running code is inside of. An AsyncLocalStorage carries the list with the flow. The list is
 * immutable: code that enters a hold gets a new list without the closed holds. Otherwise the list of a flow that enters
 * one hold after another would grow without limit.
 */

/** An entry of the list. A hold surrounds its flow until it is released, even if the hold was lost before. */
export interface FlowHold {
  readonly open: boolean;
  /** The holds that a joint hold consists of. Code that is inside the joint hold is inside each of its members. */
  readonly members?: readonly FlowHold[];
}

type Holds = readonly FlowHold[];

interface GlobalFlow {
  readonly version: number;
  readonly storage: asyncHooks.AsyncLocalStorage<Holds>;
}

/** Increase this version when the stored format changes, so that an older copy of the package does not misread it. */
const FORMAT_VERSION = 1;
const SHARED = Symbol.for('holdfast.flow');
const NONE: Holds = Object.freeze([]);
// The class of the engine, even if a library has replaced the global `Promise`.
const NativePromise = (async () => {})().constructor as PromiseConstructor;

// Some runtimes lack parts of node:async_hooks. A named import of a missing part would prevent the module from loading.
const { AsyncLocalStorage, executionAsyncResource } = asyncHooks as Partial<typeof asyncHooks>;
const storage = globalStorage();

/**
 * Without AsyncContextFrame, Node keeps the current store on the resource object of the running callback. `enterWith`
 * changes that object, and the object may belong to other code.
 */
const keepsStoreOnResource = runOutside(() => {
  const resource = executionAsyncResource?.();
  return resource !== undefined && Reflect.ownKeys(resource).some((key) => Reflect.get(resource, key) === NONE);
});

/** The holds that the calling code is inside of, outermost first. Some of them may be closed. */
export function currentHolds(): readonly FlowHold[] {
  return storage?.getStore() ?? NONE;
}

/** The innermost of these holds that is accepted. The members of a joint hold count as well. */
export function innermostOf<H extends FlowHold>(
  holds: readonly FlowHold[],
  accepts: (hold: FlowHold) => hold is H,
): H | undefined {
  for (let i = holds.length - 1; i >= 0; i -= 1) {
    const hold = holds[i] as FlowHold;
    if (accepts(hold)) return hold;
    const member = hold.members === undefined ? undefined : innermostOf(hold.members, accepts);
    if (member !== undefined) return member;
  }
  return undefined;
}

/** Runs `fn` inside `hold` and inside the open holds around the caller. `hold` must be open. */
export function runInside<H extends FlowHold, T>(hold: H, fn: (hold: H) => T): T {
  return storage === undefined ? fn(hold) : storage.run(openHoldsAnd(hold), fn, hold);
}

/**
 * As {@link runInside}, for a body of the user. A query of a query builder begins its work when its `then` is called: that
 * happens inside the hold, too. A promise has begun already, and is returned as it is.
 */
export function runBody<H extends FlowHold, T>(hold: H, body: (hold: H) => T): T {
  return storage === undefined ? begin(body, hold) : storage.run(openHoldsAnd(hold), begin<H, T>, body, hold);
}

function begin<H, T>(body: (hold: H) => T, hold: H): T {
  const returned = body(hold);
  if (!isLazy(returned)) return returned;
  return new Promise((resolve, reject) => void returned.then(resolve, reject)) as T;
}

/** The `then` of promises that do nothing when it is called, beside that of the engine. */
export const begunThens = new Set<unknown>();

function isLazy(value: unknown): value is PromiseLike<unknown> {
  const then: unknown = (value as Partial<PromiseLike<unknown>> | null | undefined)?.then;
  if (typeof then !== 'function') return false;
  // A subclass of Promise may begin its work at its own `then`, as the queries of postgres.js do.
  return !types.isPromise(value) || (then !== NativePromise.prototype.then && !begunThens.has(then));
}

/** Runs `fn` inside the holds of another flow: pass the list that `currentHolds()` returned in that flow. */
export function runAmong<T>(holds: readonly FlowHold[], fn: () => T): T {
  return storage === undefined ? fn() : storage.run(holds, fn);
}

/** Runs `fn` outside of every hold. Timers and connections that `fn` starts stay outside, too. */
export function runOutside<T>(fn: () => T): T {
  return storage === undefined ? fn() : storage.run(NONE, fn);
}

/**
 * Puts the running code inside `hold` until its flow ends. If the store is on the resource object and that object is not
 * `continuation`, the call does nothing: it would put other code, and the callers of that code, inside the hold.
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

/**
 * `import` and `require` load two copies of the package. They share one storage, so each sees the holds of the other.
 */
function globalStorage(): GlobalFlow['storage'] | undefined {
  if (AsyncLocalStorage === undefined) return undefined;
  const shared = (globalThis as { [SHARED]?: GlobalFlow })[SHARED];
  if (shared?.version === FORMAT_VERSION) return shared.storage;
  const own = new AsyncLocalStorage<Holds>();
  if (shared === undefined) {
    const value: GlobalFlow = { version: FORMAT_VERSION, storage: own };
    Object.defineProperty(globalThis, SHARED, { value });
  } else {
    warn(
      'HOLDFAST_VERSIONS',
      `another copy of holdfast in this process tracks holds in format ${shared.version}, and this copy uses format ` +
        `${FORMAT_VERSION}; neither copy sees the holds of the other, so install one version of holdfast`,
    );
  }
  return own;
}
