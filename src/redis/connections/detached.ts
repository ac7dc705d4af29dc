import * as asyncHooks from 'node:async_hooks';

// A runtime may lack it; a named import would keep the module from loading there.
const { AsyncResource } = asyncHooks as Partial<typeof asyncHooks>;
const atLoad = AsyncResource && new AsyncResource('holdfast');

/**
 * Runs `fn` in the async context in which this module was loaded. A socket or a timer keeps the context in which it was
 * made for as long as it lives: an agent would count what it does later as part of the request that happened to come
 * first, and could not forget that request.
 */
export function detached<T>(fn: () => T): T {
  return atLoad === undefined ? fn() : atLoad.runInAsyncScope(fn);
}

/** What runs a function in the caller's async context again, later. */
export function callerContext(): (<T>(fn: () => T) => T) | undefined {
  if (AsyncResource === undefined) return undefined;
  const resource = new AsyncResource('holdfast');
  return (fn) => resource.runInAsyncScope(fn);
}
