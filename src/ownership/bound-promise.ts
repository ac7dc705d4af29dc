import * as v8 from 'node:v8';
import { currentHolds, enter, runOutside, type FlowHold } from './flow.js';

/*
 * A promise that knows which code awaits it, so that the hold it brings can be entered there and nowhere else.
 *
 * `await promise` and `promise.then()` read `promise.constructor` in the moment before the engine makes the
 * continuation, the promise as which the awaiting code will run on. `constructor` is a getter here:
 *
 *   constructor is read     switch onInit on
 *   onInit(T, parent)       switch it off; if the parent is the promise just read, T is its continuation
 *   the promise settles     with a hold: switch onBefore on
 *   onBefore(T)             enter the hold in T; switch it off when no other continuation is due
 *
 * The awaiting function's caller has a continuation of its own, with its own store, so nothing leaks upwards. Whatever
 * goes wrong on the way (a hook that did not run, another realm's promise) leaves the code outside of the hold.
 */

export interface BoundDeferred<T> {
  readonly promise: Promise<T>;
  /** With a hold, the code that awaited the promise is inside it from there on. */
  resolve(value: T, hold?: FlowHold): void;
  reject(error: unknown): void;
}

type Continuation = Promise<unknown>;
type StopHook = () => void;

// A named import of something a runtime lacks would keep the module from loading there.
const { promiseHooks } = v8 as Partial<typeof v8>;

// What async functions return and await, even where the global of that name has been replaced.
const NativePromise = (async () => {})().constructor as PromiseConstructor;

/** The promise whose `constructor` was read last; the next promise that is made may be its continuation. */
let awaited: BoundPromise<unknown> | undefined;
let stopInit: StopHook | undefined;

/** Continuations that are due to run, and the hold each will enter. */
const due = new Map<Continuation, FlowHold>();
let stopBefore: StopHook | undefined;

function expectContinuationOf(promise: BoundPromise<unknown>): void {
  awaited = promise;
  stopInit ??= promiseHooks?.onInit(onInit) as StopHook;
}

function onInit(promise: Continuation, parent: Promise<unknown>): void {
  const expected = awaited;
  awaited = undefined;
  stopInit?.();
  stopInit = undefined;
  if (expected === parent) expected.continuesAs(promise);
}

function onBefore(promise: Continuation): void {
  const hold = due.get(promise);
  if (hold === undefined) return;
  due.delete(promise);
  if (due.size === 0) {
    stopBefore?.();
    stopBefore = undefined;
  }
  enter(promise, hold);
}

function enterWhenItRuns(continuation: Continuation, hold: FlowHold): void {
  due.set(continuation, hold);
  stopBefore ??= promiseHooks?.onBefore(onBefore) as StopHook;
}

class BoundPromise<T> extends NativePromise<T> {
  #continuations: Continuation[] = [];
  #settled = false;
  #hold: FlowHold | undefined;

  /** `await` does not come here. `.then`, `.catch` and `.finally` do, and hand the hold on to who awaits their result. */
  override then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    const handled = super.then(onFulfilled, onRejected);
    const next = deferred<A | B>();
    handled.then(
      (value) => next.resolve(value, this.#hold),
      (error: unknown) => next.reject(error, this.#hold),
    );
    return next.promise;
  }

  continuesAs(continuation: Continuation): void {
    if (!this.#settled) this.#continuations.push(continuation);
    else if (this.#hold !== undefined) enterWhenItRuns(continuation, this.#hold);
  }

  /** Before the engine settles the promise: then every continuation is still waiting to run. */
  settlesWith(hold: FlowHold | undefined): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#hold = hold;
    if (hold !== undefined) for (const continuation of this.#continuations) enterWhenItRuns(continuation, hold);
    this.#continuations = [];
  }
}

// Not in the class body: there, `constructor` is the class itself.
Reflect.defineProperty(BoundPromise.prototype, 'constructor', {
  get(this: BoundPromise<unknown>) {
    expectContinuationOf(this);
    return NativePromise;
  },
});

/** Work done under the hold may fail inside it: whoever handles that is inside, too. */
interface HandingOn<T> extends BoundDeferred<T> {
  reject(error: unknown, hold?: FlowHold): void;
}

function deferred<T>(): HandingOn<T> {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new BoundPromise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return {
    promise,
    resolve(value, hold) {
      promise.settlesWith(hold);
      resolve(value);
    },
    reject(error, hold) {
      promise.settlesWith(hold);
      reject(error);
    },
  };
}

/** Where promises cannot be bound it makes a plain one: the code that awaits it stays outside of the hold. */
export function boundDeferred<T>(): BoundDeferred<T> {
  if (canHook() && supported !== false) return deferred<T>();
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new NativePromise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

/** For arguments that are refused: a method that locks only ever rejects, it never throws. */
export function boundRejection<T>(error: unknown): Promise<T> {
  const rejected = boundDeferred<T>();
  rejected.reject(error);
  return rejected.promise;
}

let hookable: boolean | undefined;

/** Bun has the hooks, and throws when one is switched on: whoever awaits a bound promise there would get that error. */
function canHook(): boolean {
  return (hookable ??= promiseHooks !== undefined && switchesOn(promiseHooks));
}

function switchesOn(hooks: typeof v8.promiseHooks): boolean {
  const nothing = (): void => undefined;
  try {
    for (const stop of [hooks.onInit(nothing), hooks.onBefore(nothing)]) (stop as StopHook)();
    return true;
  } catch {
    return false;
  }
}

let supported: boolean | Promise<boolean> | undefined;

/** Whether this runtime can tell who awaited: tried once, in less than a millisecond, without timers. */
export function supportsBoundPromises(): boolean | Promise<boolean> {
  if (!canHook()) return false;
  supported ??= runOutside(bindsToTheAwaiter).then(
    (result) => (supported = result),
    () => (supported = false),
  );
  return supported;
}

/** One that takes, and nests; one that takes nothing; one that started them both. */
async function bindsToTheAwaiter(): Promise<boolean> {
  const outer = { open: true };
  const inner = { open: true };
  let right = true;
  const inside = (...expected: FlowHold[]): void => {
    const holds = currentHolds();
    right &&= holds.length === expected.length && expected.every((hold, at) => holds[at] === hold);
  };
  const taker = async (): Promise<void> => {
    await grant(outer);
    inside(outer);
    await grant(inner).then(() => inside(outer, inner));
    inside(outer, inner);
    inner.open = false;
    await NativePromise.resolve();
    inside(outer, inner);
  };
  const bystander = async (): Promise<void> => {
    for (let turn = 0; turn < 10; turn += 1) {
      await NativePromise.resolve();
      inside();
    }
  };
  const started = [taker(), bystander()];
  inside();
  for (const flow of started) {
    await flow;
    inside();
  }
  return right;
}

function grant(hold: FlowHold): Promise<void> {
  const granted = deferred<undefined>();
  void NativePromise.resolve().then(() => granted.resolve(undefined, hold));
  return granted.promise;
}
