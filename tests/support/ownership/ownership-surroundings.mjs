// @ts-check
import { AsyncLocalStorage, createHook } from 'node:async_hooks';
import { Session } from 'node:inspector';
import { promiseHooks } from 'node:v8';

/**
 * Other activities in a process that uses locks. Each function starts one and returns a function that ends it.
 * @type {Record<string, () => () => void>}
 */
export const surroundings = {
  'nothing else': () => () => {},

  'a debugger with async stacks': () => {
    const session = new Session();
    session.connect();
    session.post('Debugger.enable');
    session.post('Runtime.enable');
    session.post('Debugger.setAsyncCallStackDepth', { maxDepth: 32 });
    return () => session.disconnect();
  },

  async_hooks: () => {
    const hook = allAsyncHooks().enable();
    return () => void hook.disable();
  },

  'async_hooks for promises only': () => {
    const hook = createHook({ init() {}, promiseResolve() {} }).enable();
    return () => void hook.disable();
  },

  'async_hooks toggled each turn': () => {
    const hook = allAsyncHooks();
    let on = false;
    return eachTurn(() => {
      on = !on;
      if (on) hook.enable();
      else hook.disable();
    });
  },

  'promise hooks of others': () => {
    return foreignPromiseHooks();
  },

  'promise hooks of others toggled each turn': () => {
    /** @type {(() => void) | undefined} */
    let stop;
    return eachTurn(() => {
      if (stop === undefined) {
        stop = foreignPromiseHooks();
      } else {
        stop();
        stop = undefined;
      }
    });
  },

  'an AsyncLocalStorage of another, entered everywhere': () => {
    const storage = new AsyncLocalStorage();
    storage.enterWith('process');
    return () => storage.disable();
  },

  'Promise.prototype.then wrapped': () => {
    const { then } = Promise.prototype;
    Promise.prototype.then = /** @type {typeof then} */ (
      /** @this {Promise<unknown>} */
      function (onFulfilled, onRejected) {
        return then.call(this, onFulfilled && ((value) => onFulfilled(value)), onRejected);
      }
    );
    return () => {
      Promise.prototype.then = then;
    };
  },

  'the global Promise replaced': () => {
    const { Promise: native } = globalThis;
    globalThis.Promise = class Replaced extends native {};
    return () => {
      globalThis.Promise = native;
    };
  },
};

function allAsyncHooks() {
  return createHook({ init() {}, before() {}, after() {}, destroy() {}, promiseResolve() {} });
}

function foreignPromiseHooks() {
  return /** @type {() => void} */ (promiseHooks.createHook({ init() {}, before() {}, after() {}, settled() {} }));
}

/** @param {() => void} toggle */
function eachTurn(toggle) {
  let turn = setImmediate(function next() {
    toggle();
    turn = setImmediate(next);
  });
  return () => clearImmediate(turn);
}
