import * as asyncHooks from 'node:async_hooks';

// Some runtimes lack AsyncResource. A named import of it would prevent the module from loading in them.
const { AsyncResource } = asyncHooks as Partial<typeof asyncHooks>;
const atLoad = AsyncResource && new AsyncResource('holdfast');

/**
 * Runs `fn` in the async context in which this module was loaded. A socket or timer keeps the async context in which it
 * was created. Without this function, a monitoring agent would assign all later work of the socket to the request that
 * came first, and could never free the data of that request.
 */
export function detached<T>(fn: () => T): T {
  return atLoad === undefined ? fn() : atLoad.runInAsyncScope(fn);
}

/** Returns a function that runs code in the async context of this call later. */
export function callerContext(): (<T>(fn: () => T) => T) | undefined {
  if (AsyncResource === undefined) return undefined;
  const resource = new AsyncResource('holdfast');
  return (fn) => resource.runInAsyncScope(fn);
}
