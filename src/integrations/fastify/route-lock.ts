/*
 * `config.lock` of routes. The hook of a route is the last of its `preHandler` hooks. It calls `done` inside the hold,
 * so that the handler runs inside of it, and holds until the response has ended.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { InvalidArgumentError, type LockClient } from '../../index.js';
import { holdForRequest, RequestBusyError } from '../http/index.js';
import { errorOf } from '../shared/error-of.js';
import { checkRequestOptions } from '../shared/route-checks.js';
import type { FastifyRouteLock } from './options.js';

/** The hooks that hold the locks of routes. */
const hooks = new WeakSet<object>();

/** Adds the lock to the routes that are defined from now on in this scope and in the scopes inside of it. */
export function lockRoutes(app: FastifyInstance, client: LockClient): void {
  const known = new WeakSet<FastifyRouteLock>();
  app.addHook('onRoute', (route: RouteOptions) => {
    const lock = route.config?.lock;
    if (lock === undefined) return;
    checkRequestOptions(lock, ['onBusy'], 'config.lock');
    const checked = Object.freeze({ ...lock });
    known.add(checked);
    route.config = { ...route.config, lock: checked };
    // The options of another route may have its hook: Fastify derives a HEAD route from a GET route, and so do plugins.
    const others = [route.preHandler ?? []].flat().filter((hook) => !hooks.has(hook));
    const hook = holdLock(client, checked);
    hooks.add(hook);
    route.preHandler = [...others, hook];
  });
  // `onRoute` does not see the routes before it. Hooks of requests are read when the application is ready.
  app.addHook('onRequest', (request, _reply, done) => {
    const { lock } = request.routeOptions.config;
    done(lock === undefined || known.has(lock) ? undefined : tooEarly(request));
  });
}

const tooEarly = ({ routeOptions: { url, config } }: FastifyRequest): InvalidArgumentError =>
  new InvalidArgumentError(
    'config.lock',
    'an option of a route that is defined after the plugin',
    config.lock,
    `the route ${url ?? ''} has a config.lock and was defined before the plugin holdfast was loaded; await app.register() ` +
      'before the route, or define the route in a plugin that is registered later',
  );

type Done = (error?: Error) => void;

function holdLock(client: LockClient, { key, when, onBusy, ...call }: FastifyRouteLock) {
  const hold = async (request: FastifyRequest, reply: FastifyReply, done: Done): Promise<void> => {
    if (when !== undefined && !(await when(request))) return done();
    try {
      const name = typeof key === 'function' ? await key(request) : key;
      await holdForRequest(request.raw, reply.raw, { ...call, client, key: name }, done);
    } catch (error) {
      if (onBusy === undefined || !(error instanceof RequestBusyError)) throw error;
      const payload = await onBusy(error, request, reply);
      if (payload !== undefined && payload !== reply && !reply.sent) reply.send(payload);
    }
  };
  // Not async: Fastify would continue when the promise resolves, which is at the end of the hold.
  return function holdRouteLock(request: FastifyRequest, reply: FastifyReply, done: Done): void {
    hold(request, reply, done).catch((reason: unknown) => done(errorOf(reason)));
  };
}
