import type { IncomingMessage } from 'node:http';
import { InvalidArgumentError, type LockClient } from '../../../index.js';

/** What {@link InspectorOptions.authorize} says: whether the user may see the page, and optionally the user's name. */
export type Authorization = boolean | string;

/** The options of {@link createInspector}. */
export interface InspectorOptions {
  /** The client whose Redis the page shows. It frees locks, too, so it needs the permissions of both. */
  client: LockClient;
  /**
   * Decides for every request whether its user may see the page: `true`, or the name of the user for the audit event, or
   * `false`. Each half a minute it is called again for every open page, with the request that opened the page: read the
   * login from its store, not from what a middleware has put on the request. Required, except where `NODE_ENV` is
   * `development` and `actions` is off: there, a missing function admits requests of this machine that no proxy has
   * forwarded.
   */
  authorize?: ((request: IncomingMessage) => Authorization | PromiseLike<Authorization>) | undefined;
  /**
   * Whether the page may free locks.
   *
   * @defaultValue `false`
   */
  actions?: boolean | undefined;
  /**
   * The host names under which the page may be opened, without a port. A page of another site whose name leads to this
   * server must not read it.
   *
   * @defaultValue `['localhost', '127.0.0.1', '[::1]']`
   */
  allowedHosts?: readonly string[] | undefined;
  /**
   * The path under which the server calls the inspector, such as `/locks`, if the server does not remove it from
   * `request.url`. Express removes it, node:http and Fastify do not.
   *
   * @defaultValue what the server removed
   */
  basePath?: string | undefined;
}

/** The options with their defaults. */
export interface ResolvedInspectorOptions {
  readonly client: LockClient;
  readonly authorize: (request: IncomingMessage) => Authorization | PromiseLike<Authorization>;
  readonly actions: boolean;
  readonly allowedHosts: ReadonlySet<string>;
  readonly basePath: string | undefined;
}

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];
const KNOWN: readonly string[] = ['client', 'authorize', 'actions', 'allowedHosts', 'basePath'];

/** @throws {InvalidArgumentError} An option is invalid or missing. */
export function resolveOptions(options: InspectorOptions): ResolvedInspectorOptions {
  if (typeof options !== 'object' || (options as unknown) === null) {
    throw new InvalidArgumentError('options', 'an object with client and authorize', options);
  }
  const unknown = Object.keys(options).find((key) => !KNOWN.includes(key));
  if (unknown !== undefined) {
    throw new InvalidArgumentError(`options.${unknown}`, `absent; expected one of ${KNOWN.join(', ')}`, unknown);
  }
  const { client, actions = false, allowedHosts = LOOPBACK, basePath } = options;
  if (typeof (client as Partial<LockClient> | undefined)?.overview !== 'function') {
    throw new InvalidArgumentError('client', 'a client, as createClient() returns it', undefined);
  }
  if (typeof actions !== 'boolean') throw new InvalidArgumentError('actions', 'a boolean', actions);
  if (!Array.isArray(allowedHosts) || !allowedHosts.every((host) => typeof host === 'string' && isHost(host))) {
    throw new InvalidArgumentError('allowedHosts', 'a list of host names without ports', allowedHosts);
  }
  if (basePath !== undefined && !(typeof basePath === 'string' && /^(\/[^?#]+)?\/?$/.test(basePath))) {
    throw new InvalidArgumentError('basePath', 'a path, such as /locks', basePath);
  }
  return {
    client,
    authorize: authorizeOf(options),
    actions,
    allowedHosts: new Set((allowedHosts as readonly string[]).map((host) => host.toLowerCase())),
    basePath: basePath?.replace(/\/$/, ''),
  };
}

const isHost = (host: string): boolean => /^(?:[\w.-]+|\[[\da-f:.]+\])$/i.test(host);

function authorizeOf({ authorize, actions = false }: InspectorOptions): ResolvedInspectorOptions['authorize'] {
  if (typeof authorize === 'function') return authorize;
  if (authorize === undefined && !actions && process.env['NODE_ENV'] === 'development') return isFromHere;
  throw new InvalidArgumentError(
    'authorize',
    'a function (request) => boolean that asks the login of the application; it may be absent only with NODE_ENV=development and without actions',
    authorize,
  );
}

/** What proxies add. Behind a proxy on this machine, every request comes from this machine. */
const FORWARDED = /^(?:forwarded|via|x-real-ip|x-forwarded-.*)$/;

const isFromHere = ({ headers, socket }: IncomingMessage): boolean =>
  !Object.keys(headers).some((name) => FORWARDED.test(name)) &&
  (/^(::ffff:)?127\.|^::1$/.test(socket.remoteAddress ?? '') || socket.remoteAddress === undefined);
