import { Redis, type Cluster, type ClusterNode, type RedisOptions } from 'ioredis';
import { InvalidArgumentError } from '../../errors.js';

/**
 * An ioredis connection of the user. The client copies its address, credentials and TLS options, and never uses the
 * connection itself.
 */
export type UserConnection = Redis | Cluster;

/** Options as `new Redis()` of ioredis takes them, with a host, a port, a path or sentinels. */
export type IoredisOptions = RedisOptions;

/** A connection of iovalkey, a fork of ioredis. */
export interface IovalkeyConnection {
  readonly isCluster: boolean;
  readonly options: object;
  duplicate(...args: never[]): unknown;
  sendCommand(...args: never[]): unknown;
}

/** The schemes of an address. Valkey's are those of Redis under another name. */
const SCHEMES = 'redis://, rediss://, valkey:// or valkeys://';

/**
 * The address with a scheme that ioredis knows: ioredis reads every other scheme as the name of a host.
 *
 * @throws {InvalidArgumentError} The address has another scheme.
 */
export function withKnownScheme(address: string, argument: 'url' | 'redis'): string {
  // ioredis knows them in lower case only.
  const [scheme, tls] = /^(?:redis|valkey)(s?):\/\//i.exec(address) ?? [];
  if (scheme !== undefined) return `redis${tls === '' ? '' : 's'}://${address.slice(scheme.length)}`;
  throw new InvalidArgumentError(argument, `an address that begins with ${SCHEMES}`, HIDDEN);
}

/** Stands for the address in errors, because any part of the address may be a piece of a password. */
const HIDDEN = '...';

/**
 * Creates a connection from an address, for its options only: it never connects. The function checks every number in
 * the address. ioredis would turn a database that is not a number into `SELECT NaN`, and the unhandled rejection of
 * that command would end the process.
 *
 * @throws {InvalidArgumentError} The address cannot be parsed, it has another scheme, or its database, port or family is not
 *   a number.
 */
export function fromUrl(address: string): Redis {
  const url = withKnownScheme(address, 'url');
  const { pathname, searchParams, hash } = parsed(url);
  const inPath = pathname.replace(/^\//, '');
  // A `/`, `?` or `#` in the password that is not percent-encoded ends the host too early. The connection error would
  // then print a piece of the password as the host.
  if (hash !== '' || inPath.includes('@') || [...searchParams.keys()].some((key) => key.includes('@')))
    throw unreadable();
  if (inPath !== '' && !isIndex(inPath)) {
    throw new InvalidArgumentError(
      'url',
      'an address whose path is empty or a database number, such as redis://host:6379/0',
      HIDDEN,
    );
  }
  for (const option of ['db', 'port', 'family']) {
    if (searchParams.getAll(option).every(isIndex)) continue;
    throw new InvalidArgumentError('url', `an address whose query parameter ${option} is a number`, HIDDEN);
  }
  try {
    return new Redis(url, { lazyConnect: true });
  } catch {
    throw unreadable(); // the original error contains the address
  }
}

/** The settings of ioredis that say where Redis is. `db` and `tls` say it together with a `url`. */
const OF_IOREDIS = ['host', 'port', 'path', 'sentinels', 'db', 'tls'];
/** Settings, methods and properties that options of ioredis do not have. */
const OF_OTHERS = ['socket', 'database', 'rootNodes', 'sentinelRootNodes', 'sendCommand', 'connect', 'isOpen'];

/**
 * Creates a connection from options as `new Redis()` of ioredis takes them, for its options only: it never connects. A
 * `url` among them wins for what it names, as in BullMQ. Returns `undefined` if `given` are no such options.
 */
export function fromIoredisOptions(given: unknown): Redis | undefined {
  if (typeof given !== 'object' || given === null) return undefined;
  const has = (keys: readonly string[]): boolean =>
    keys.some((key) => (given as Record<string, unknown>)[key] !== undefined);
  if (!has(OF_IOREDIS) || has(OF_OTHERS)) return undefined;
  const { url, ...options } = given as { url?: unknown } & Pick<IoredisOptions, 'tls'>;
  if (url === undefined) return new Redis({ ...options, lazyConnect: true });
  if (typeof url !== 'string') return undefined;
  const named = namedIn(url);
  // The address says only that TLS is on.
  const tls = named.tls !== undefined && options.tls ? { tls: options.tls } : {};
  return new Redis({ ...options, ...named, ...tls, lazyConnect: true });
}

/** What an address names, and nothing that it leaves to other options. */
export function namedIn(url: string): Pick<RedisOptions, 'host' | 'port' | 'db' | 'username' | 'password' | 'tls'> {
  const { options } = fromUrl(url);
  const address = new URL(withKnownScheme(url, 'url'));
  const parts = { host: address.hostname, port: address.port, db: address.pathname.slice(1) };
  const named = Object.entries(parts).filter(([part, text]) => text !== '' || address.searchParams.has(part));
  return {
    ...Object.fromEntries(named.map(([part]) => [part, options[part as keyof typeof parts]])),
    ...(options.username ? { username: options.username } : {}),
    ...(options.password ? { password: options.password } : {}),
    ...(options.tls === undefined ? {} : { tls: options.tls }),
  };
}

function parsed(url: string): URL {
  try {
    return new URL(url);
  } catch {
    throw unreadable();
  }
}

const unreadable = (): InvalidArgumentError =>
  new InvalidArgumentError(
    'url',
    'a redis:// or rediss:// address whose password has its special characters percent-encoded',
    HIDDEN,
  );

const isIndex = (text: string): boolean => /^\d{1,9}$/.test(text);

/**
 * Whether `value` is an ioredis connection. A client of another package has some of the same methods, so without this
 * check a call would fail only at its deadline. `instanceof` does not work, because the application may have another
 * copy of ioredis.
 */
export function isOfIoredis(value: unknown): value is UserConnection {
  if (typeof value !== 'object' || value === null) return false;
  const { isCluster, duplicate, sendCommand, options, connector, startupNodes } = value as Record<string, unknown>;
  if (typeof duplicate !== 'function' || typeof sendCommand !== 'function' || typeof options !== 'object') return false;
  return isCluster === true ? Array.isArray(startupNodes) : isCluster === false && typeof connector === 'object';
}

/** Whether a list of sentinels or nodes is one. ioredis accepts anything there, and fails later. */
export function hasServers(given: UserConnection): boolean {
  const { startupNodes, options } = given as unknown as { startupNodes: unknown; options: { sentinels?: unknown } };
  const list = given.isCluster ? startupNodes : (options.sentinels ?? undefined);
  return list === undefined || (Array.isArray(list) && list.length > 0 && list.every(Boolean));
}

/** The nodes that the user specified. Only the type marks `startupNodes` as private, and `duplicate()` copies it. */
export const startupNodesOf = (given: Cluster): readonly ClusterNode[] =>
  (given as unknown as { startupNodes: ClusterNode[] }).startupNodes;

/**
 * @throws {InvalidArgumentError} The connection was made from an address with a scheme that ioredis does not know. Its host
 *   is then that scheme, and its path has the rest of the address, with the password.
 */
export function checkAddress(given: UserConnection): void {
  if (given.isCluster) {
    for (const node of startupNodesOf(given as Cluster))
      if (typeof node === 'string' && node.includes('://')) withKnownScheme(node, 'redis');
    return;
  }
  const { host, path } = given.options as RedisOptions;
  const isScheme = path?.startsWith('//') === true && host !== 'localhost';
  if (!isScheme && host?.includes('://') !== true && path?.includes('@') !== true) return;
  throw new InvalidArgumentError(
    'redis',
    'a connection whose address begins with redis:// or rediss:// (ioredis takes every other scheme for a host; ' +
      'createClient({ url }) knows valkey:// and valkeys:// as well)',
    HIDDEN,
  );
}

/**
 * @throws {InvalidArgumentError} The database is not a number from 0 on. ioredis stores `NaN` if the path of its
 * address is not a number.
 */
export function checkDatabase(given: UserConnection): void {
  const { db } = given.options as { db?: unknown };
  if (given.isCluster || db === undefined || db === null || (Number.isSafeInteger(db) && (db as number) >= 0)) return;
  throw new InvalidArgumentError('redis', 'a connection whose database (options.db) is an integer of at least 0', db);
}
