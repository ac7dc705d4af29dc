import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { createClient, type LockClient } from '../../index.js';
import { checkClient } from '../shared/route-checks.js';
import type { HoldfastFastifyOptions } from './options.js';
import { lockRoutes } from './route-lock.js';

/**
 * The plugin of Fastify 5. It decorates the application with its client, `app.locks`, and it gives routes the option
 * `config.lock`: each request of the route holds the lock from the start of its handler until the reply was sent or
 * aborted.
 *
 * - Await the registration, or define the routes in a plugin that is registered later. A request of a route that was
 *   defined before the plugin was loaded fails, because it would run without its lock.
 * - The lock is acquired after the `preHandler` hooks of the application and of the route. A request that a hook
 *   refuses acquires no lock.
 * - The handler runs inside the hold, so a nested call re-enters.
 * - A client that disconnects while its request waits ends the wait. The handler does not run.
 * - The client disconnects while the handler works: the lock is released although the handler continues. The signal of
 *   `requestLock(request.raw)` aborts. For work that must always complete, acquire the lock once more with `withLock`:
 *   that hold outlives the request.
 * - A client that the plugin created is closed in `onClose`, when the server has completed its requests.
 *
 * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an option of the plugin or of a route is invalid.
 * @example
 * await app.register(holdfastFastify, { url: 'redis://127.0.0.1:6379' });
 * app.post('/orders/:id/pay', { config: { lock: { key: (request) => `order:${(request.params as { id: string }).id}` } } }, async () => pay());
 */
export const holdfastFastify: FastifyPluginAsync<HoldfastFastifyOptions> = fastifyPlugin(
  // eslint-disable-next-line @typescript-eslint/require-await -- an error of an async plugin rejects its registration
  async function holdfast(app: FastifyInstance, options: HoldfastFastifyOptions): Promise<void> {
    const client = clientFor(app, options);
    app.decorate('locks', client);
    lockRoutes(app, client);
  },
  { fastify: '5.x', name: 'holdfast' },
);

function clientFor(app: FastifyInstance, options: HoldfastFastifyOptions): LockClient {
  if (options.client !== undefined) return checkClient(options.client);
  const { close, client: _, ...given } = options;
  const client = createClient(given);
  app.addHook('onClose', () => client.close(close));
  return client;
}
