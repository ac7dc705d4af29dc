/*
 * Reads the settings of the official package `redis`, which has no type or class in common with ioredis. Only what that
 * package publishes is read: the property `options` of a client, and options as its `createClient`, `createCluster` and
 * `createSentinel` take them. A cluster, pool or sentinel of that package keeps its options to itself.
 */
import { Cluster, Redis, type ClusterOptions, type RedisOptions } from 'ioredis';
import type { Clock } from '../../clock.js';
import { InvalidArgumentError } from '../../errors.js';
import { sourceOf, type CredentialsSource } from './credentials.js';
import { namedIn, type UserConnection } from './user-connection.js';

/** Credentials of the package `redis`. */
export interface NodeRedisCredentials {
  username?: string | undefined;
  password?: string | undefined;
}

/** A provider of credentials of the package `redis`, which answers a question or tells every change. */
export type NodeRedisCredentialsProvider =
  | { readonly type: 'async-credentials-provider'; credentials(): Promise<NodeRedisCredentials> }
  | {
      readonly type: 'streaming-credentials-provider';
      subscribe(listener: {
        onNext(credentials: NodeRedisCredentials): void;
        onError(error: Error): void;
      }): Promise<[NodeRedisCredentials, { dispose(): void }]>;
      onReAuthenticationError(error: Error): void;
    };

/** Options as `createClient` of the package `redis` takes them, as far as they say where Redis is. */
export interface NodeRedisOptions {
  url?: string | undefined;
  /** `host`, `port`, `path`, `family`, `tls: true` and the options of `tls.connect()`. */
  socket?: object | undefined;
  username?: string | undefined;
  password?: string | undefined;
  database?: number | undefined;
  /** Name of the connection. It is the default of `clientName`. */
  name?: string | undefined;
  /** Where the password comes from. A provider wins over `username` and `password`. */
  credentialsProvider?: NodeRedisCredentialsProvider | undefined;
  /** The default of the option of the same name of this package. */
  keyPrefix?: string | Buffer | undefined;
}

/** A client of the package `redis`. */
export interface NodeRedisClient {
  readonly isOpen: boolean;
  readonly options?: NodeRedisOptions | undefined;
}

/** Options as `createCluster` of the package `redis` takes them. */
export interface NodeRedisClusterOptions {
  rootNodes: readonly NodeRedisOptions[];
  defaults?: NodeRedisOptions | undefined;
  nodeAddressMap?: object | undefined;
  keyPrefix?: string | Buffer | undefined;
}

/** Options as `createSentinel` of the package `redis` takes them. */
export interface NodeRedisSentinelOptions {
  name: string;
  sentinelRootNodes: readonly { host: string; port: number }[];
  nodeClientOptions?: NodeRedisOptions | undefined;
  sentinelClientOptions?: NodeRedisOptions | undefined;
  keyPrefix?: string | Buffer | undefined;
}

/** Where Redis is, as a user of the package `redis` has it. */
export type NodeRedisSource =
  | NodeRedisClient
  | (NodeRedisOptions & ({ url: string } | { socket: object }))
  | NodeRedisClusterOptions
  | NodeRedisSentinelOptions;

/**
 * Creates a connection of ioredis with the settings of a client or options of the package `redis`, for its options only:
 * it never connects. Returns `undefined` if `given` is neither.
 */
export function fromNodeRedis(given: unknown): Redis | Cluster | undefined {
  if (typeof given !== 'object' || given === null) return undefined;
  const { isOpen, options } = given as Partial<NodeRedisClient>;
  if (typeof isOpen === 'boolean') return isObject(options) ? single(options) : undefined;
  if ('sendCommand' in given || 'connect' in given) return undefined;
  if ('rootNodes' in given && Array.isArray(given.rootNodes)) return cluster(given as NodeRedisClusterOptions);
  if ('sentinelRootNodes' in given && Array.isArray(given.sentinelRootNodes)) {
    return sentinel(given as NodeRedisSentinelOptions);
  }
  const { url, socket } = given as NodeRedisOptions;
  return typeof url === 'string' || isObject(socket) ? single(given) : undefined;
}

/** The provider of each connection that `fromNodeRedis` created. */
const providers = new WeakMap<UserConnection, NodeRedisCredentialsProvider>();

function withProvider<C extends UserConnection>(connection: C, ...options: readonly NodeRedisOptions[]): C {
  const provider = options.map(providerIn).find(isObject);
  if (provider !== undefined) providers.set(connection, provider);
  return connection;
}

const providerIn = ({ credentialsProvider }: NodeRedisOptions): NodeRedisCredentialsProvider | undefined =>
  credentialsProvider ?? undefined;

/** The source of the credentials of a connection that `fromNodeRedis` created, if the settings have a provider. */
export function sourceOfProvider(connection: UserConnection, clock: Clock): CredentialsSource | undefined {
  const provider = providers.get(connection);
  if (provider === undefined) return undefined;
  if (provider.type !== 'streaming-credentials-provider')
    return sourceOf(async () => ({ password: '', ...defined(await provider.credentials()) }), clock);
  return {
    async lend(renew, failed) {
      let newest: NodeRedisCredentials | undefined;
      // The provider may throw, or reject although its type says otherwise.
      const tell = (act: () => void): void => void Promise.resolve().then(act).catch(failed);
      const onError = (error: Error): void => {
        failed(error);
        tell(() => provider.onReAuthenticationError(error));
      };
      const onNext = (next: NodeRedisCredentials): void => {
        newest = next;
        void renew(next).catch(onError);
      };
      const [first, subscription] = await provider.subscribe({ onNext, onError });
      return {
        get login() {
          return newest ?? first;
        },
        stop: () => tell(() => subscription.dispose()),
      };
    },
  };
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

function single(options: NodeRedisOptions): Redis {
  const redis = new Redis({ ...settingsOf(options), lazyConnect: true });
  // The package `redis` lets the credentials of an address win over a provider.
  return options.url !== undefined && /^[^/]*\/\/[^/]*@/.test(options.url) ? redis : withProvider(redis, options);
}

function cluster({ rootNodes, nodeAddressMap, keyPrefix, ...options }: NodeRedisClusterOptions): Cluster {
  const defaults = options.defaults ?? {};
  const { host: _host, port: _port, path: _path, db: _db, ...redisOptions } = settingsOf(defaults);
  // As in the package `redis`: a node that names a setting takes it from there, and the others from the defaults.
  const nodes = rootNodes.map((node) => ({
    port: 6379,
    ...settingsOf({ ...defaults, ...node, socket: { ...defaults.socket, ...node.socket } }),
  }));
  const natMap = nodeAddressMap as NonNullable<ClusterOptions['natMap']> | undefined;
  const connection = new Cluster(nodes, {
    redisOptions,
    lazyConnect: true,
    ...defined({ natMap, keyPrefix: keyPrefix?.toString() }),
  });
  return withProvider(connection, defaults, ...rootNodes);
}

function sentinel(options: NodeRedisSentinelOptions): Redis {
  const { name, sentinelRootNodes, keyPrefix } = options;
  const [nodeClientOptions, sentinelClientOptions] = [
    options.nodeClientOptions ?? {},
    options.sentinelClientOptions ?? {},
  ];
  if (providerIn(sentinelClientOptions) !== undefined) {
    throw new InvalidArgumentError(
      'redis',
      'options whose sentinelClientOptions have a username and a password (they cannot have a credentialsProvider)',
      '...',
    );
  }
  const { host: _host, port: _port, path: _path, ...node } = settingsOf(nodeClientOptions);
  const { username, password, tls } = settingsOf(sentinelClientOptions);
  const redis = new Redis({
    ...node,
    ...defined({ keyPrefix: keyPrefix?.toString(), sentinelUsername: username, sentinelPassword: password }),
    name,
    sentinels: sentinelRootNodes.map(({ host, port }) => ({ host, port })),
    ...(tls === undefined ? {} : { sentinelTLS: tls, enableTLSForSentinelMode: true }),
    lazyConnect: true,
  });
  return withProvider(redis, nodeClientOptions);
}

/** The settings that ioredis needs to find Redis. */
type Settings = Pick<
  RedisOptions,
  'host' | 'port' | 'path' | 'family' | 'username' | 'password' | 'db' | 'tls' | 'connectionName' | 'keyPrefix'
>;

/** Settings of a socket that `tls.connect()` does not get. */
const NOT_TLS = [
  ...['host', 'port', 'path', 'family', 'tls', 'connectTimeout', 'socketTimeout', 'reconnectStrategy'],
  ...['keepAlive', 'keepAliveInitialDelay', 'noDelay'],
];

function settingsOf(options: NodeRedisOptions): Settings {
  const { socket = {}, url, username, password, database, name, keyPrefix } = options;
  const { host, port, path, family, tls } = socket as Omit<Settings, 'tls'> & { tls?: unknown };
  const tlsOptions = Object.fromEntries(Object.entries(socket).filter(([key]) => !NOT_TLS.includes(key)));
  const named = url === undefined ? undefined : namedIn(url);
  return {
    ...defined({ host, port, path, family, username, password, db: database, connectionName: name }),
    ...defined({ keyPrefix: keyPrefix?.toString() }),
    ...(tls === true ? { tls: tlsOptions } : {}),
    // The package `redis` lets the address win over the other options.
    ...named,
    ...(named?.tls === undefined ? {} : { tls: tlsOptions }),
  };
}

/** Without the settings that are not given. An `undefined` would hide the value of a default. */
function defined<T extends object>(settings: T): { [K in keyof T]?: NonNullable<T[K]> } {
  const given = Object.entries(settings).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as { [K in keyof T]?: NonNullable<T[K]> };
}
