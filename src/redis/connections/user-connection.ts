import { Redis, type Cluster } from 'ioredis';
import { InvalidArgumentError } from '../../errors.js';

/** A connection to copy the address, credentials, TLS and so on from; it is never used itself. */
export type UserConnection = Redis | Cluster;

/** Every error below leaves the value out: any part of it may be a piece of a password. */
const HIDDEN = '...';

/**
 * A connection that is never opened. A query of the address counts as much as the options of a given connection.
 * ioredis turns a database that is no number into `SELECT NaN`, whose rejection nothing handles: the process would end.
 *
 * @throws {InvalidArgumentError} The address cannot be read, or one of its numbers is none.
 */
export function fromUrl(url: string): Redis {
  const { pathname, searchParams, hash } = parsed(url);
  const inPath = pathname.replace(/^\//, '');
  // An unescaped `/`, `?` or `#` ends the host too early, and the error of the connection would print a piece of the
  // password as the host.
  if (hash !== '' || inPath.includes('@') || [...searchParams.keys()].some((key) => key.includes('@')))
    throw unreadable();
  if (inPath !== '' && !isIndex(inPath)) {
    throw new InvalidArgumentError(
      'url',
      'an address whose path is the number of a database, as redis://host:6379/0',
      HIDDEN,
    );
  }
  for (const option of ['db', 'port', 'family']) {
    if (searchParams.getAll(option).every(isIndex)) continue;
    throw new InvalidArgumentError('url', `an address with a number for ${option} in its query`, HIDDEN);
  }
  try {
    return new Redis(url, { lazyConnect: true });
  } catch {
    throw unreadable(); // what was thrown repeats the address
  }
}

function parsed(url: string): URL {
  try {
    return new URL(url);
  } catch {
    throw unreadable();
  }
}

const unreadable = (): InvalidArgumentError =>
  new InvalidArgumentError('url', 'an address, with what is special in a password percent-encoded', HIDDEN);

const isIndex = (text: string): boolean => /^\d{1,9}$/.test(text);

/**
 * A client of another package has some of the same methods, so a call would fail only after its whole deadline. The
 * class cannot tell: the application may have another copy of ioredis.
 */
export function isOfIoredis(value: unknown): value is UserConnection {
  if (typeof value !== 'object' || value === null) return false;
  const { isCluster, duplicate, sendCommand, options, connector, startupNodes } = value as Record<string, unknown>;
  if (typeof duplicate !== 'function' || typeof sendCommand !== 'function' || typeof options !== 'object') return false;
  return isCluster === true ? Array.isArray(startupNodes) : isCluster === false && typeof connector === 'object';
}

/** @throws {InvalidArgumentError} As for an address: ioredis has made NaN of the path of its own. */
export function checkDatabase(given: UserConnection): void {
  const { db } = given.options as { db?: unknown };
  if (given.isCluster || db === undefined || db === null || (Number.isSafeInteger(db) && (db as number) >= 0)) return;
  throw new InvalidArgumentError('redis', 'a connection whose database (options.db) is a number from 0 on', db);
}
