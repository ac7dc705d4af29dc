import * as v8 from 'node:v8';
import { begunThens, currentHolds, enter, runOutside, type FlowHold } from './flow.js';

/*
 * A bound promise knows which code awaits it. The hold that the promise brings is entered in that code and nowhere
 * else.
 *
 * `await promise` and `promise.then()` read `promise.constructor` immediately before the engine creates the
 * continuation. The continuation is the promise that represents the rest of the awaiting code. In a bound promise,
 * `constructor` is a getter:
 *
 *   constructor is read     enable onInit
 *   onInit(T, parent)       disable onInit; if `parent` is the promise that was read, T is its continuation
 *   the promise settles     if it brings a hold: enable onBefore
 *   onBefore(T)             enter the hold in T; disable onBefore if no other continuation is due
 *
 * The caller of the awaiting function has its own continuation with its own store, so the hold does not leak to that
 * caller. If a step fails (a hook does not run, the promise belongs to another realm), the code stays outside of the
 * hold.
 */

export interface BoundDeferred<T> {
  readonly promise: Promise<T>;
  /** If `hold` is given, the code that awaits the promise runs inside the hold from its continuation on. */
  resolve(value: T, hold?: FlowHold): void;
  reject(error: unknown): void;
}

type Continuation = Promise<unknown>;
type StopHook = () => void;

// Some runtimes do not have `promiseHooks`. A named import of it would prevent the module from loading in them.
const { promiseHooks } = v8 as Partial<typeof v8>;

// The class that async functions return and await, even if a library has replaced the global `Promise`.
const NativePromise = (async () => {})().constructor as PromiseConstructor;

/** The promise whose `constructor` was read last. The next promise that the engine creates may be its continuation. */
let awaited: BoundPromise<unknown> | undefined;
let stopInit: StopHook | undefined;

/** Continuations that are due to run, each with the hold that it will enter. */
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
  /** Nearly every promise has one continuation. */
  #first: Continuation | undefined;
  #others: Continuation[] | undefined;
  #settled = false;
  #hold: FlowHold | undefined;

  /** `.then`, `.catch` and `.finally` call this method. Their result brings the hold, too. `await` does not call it. */
  override then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    const handled = super.then(onFulfilled, onRejected);
    const next = new Deferred<A | B>();
    handled.then(
      (value) => next.resolve(value, this.#hold),
      (error: unknown) => next.reject(error, this.#hold),
    );
    return next.promise;
  }

  continuesAs(continuation: Continuation): void {
    if (!this.#settled) {
      if (this.#first === undefined) this.#first = continuation;
      else (this.#others ??= []).push(continuation);
    } else if (this.#hold !== undefined) enterWhenItRuns(continuation, this.#hold);
  }

  /** Call this before the promise settles, while every continuation is still waiting to run. */
  settlesWith(hold: FlowHold | undefined): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#hold = hold;
    if (hold !== undefined) {
      if (this.#first !== undefined) enterWhenItRuns(this.#first, hold);
      for (const each of this.#others ?? []) enterWhenItRuns(each, hold);
    }
    this.#first = this.#others = undefined;
  }
}

begunThens.add(Reflect.get(BoundPromise.prototype, 'then'));

// A class body cannot define this getter: `constructor` in it declares the constructor of the class.
Reflect.defineProperty(BoundPromise.prototype, 'constructor', {
  get(this: BoundPromise<unknown>) {
    expectContinuationOf(this);
    return NativePromise;
  },
});

/**
 * A rejection can bring a hold, too: if a `.then` callback fails inside the hold, its `.catch` callback runs inside it.
 */
interface HandingOn<T> extends BoundDeferred<T> {
  reject(error: unknown, hold?: FlowHold): void;
}

class Deferred<T> implements HandingOn<T> {
  #resolve!: (value: T) => void;
  #reject!: (error: unknown) => void;

  readonly promise = new BoundPromise<T>((resolve, reject) => {
    this.#resolve = resolve;
    this.#reject = reject;
  });

  resolve(value: T, hold?: FlowHold): void {
    this.promise.settlesWith(hold);
    this.#resolve(value);
  }

  reject(error: unknown, hold?: FlowHold): void {
    this.promise.settlesWith(hold);
    this.#reject(error);
  }
}

/** A runtime that cannot bind promises gets a plain promise. The code that awaits it stays outside of the hold. */
export function boundDeferred<T>(): BoundDeferred<T> {
  if (canHook() && supported !== false) return new Deferred<T>();
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new NativePromise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

/** Reports an invalid argument: a locking method always returns a promise and never throws synchronously. */
export function boundRejection<T>(error: unknown): Promise<T> {
  const rejected = boundDeferred<T>();
  rejected.reject(error);
  return rejected.promise;
}

let hookable: boolean | undefined;

/** Bun has the hooks but throws when one is enabled. The error would reach the code that awaits a bound promise. */
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

/** Whether this runtime can bind promises. The first call tries it out, in less than 1 ms and without timers. */
export function supportsBoundPromises(): boolean | Promise<boolean> {
  if (!canHook()) return false;
  supported ??= runOutside(bindsToTheAwaiter).then(
    (result) => (supported = result),
    () => (supported = false),
  );
  return supported;
}

/** Only `taker` may be inside a hold. `bystander` and this function, which starts both, must stay outside. */
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
  const granted = new Deferred<undefined>();
  void NativePromise.resolve().then(() => granted.resolve(undefined, hold));
  return granted.promise;
}
