import { readFileSync } from 'node:fs';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { createClient, type ClientOptions, type LockClient } from '../index.js';
import { numberOption, type Arguments, UsageError } from './arguments.js';

type Environment = Readonly<Record<string, string | undefined>>;

interface Address {
  readonly host: string;
  readonly port: number;
}

/**
 * Opens a client by the options and the environment. Credentials come from the environment alone: every user of the
 * machine can read the arguments of a process.
 *
 * @throws {UsageError} The options or variables are wrong.
 */
export function connect(args: Arguments, env: Environment): LockClient {
  const prefix = args.text.prefix ?? env['HOLDFAST_PREFIX'];
  const options: ClientOptions = {
    clientName: 'cli',
    commandTimeout: numberOption(args, 'timeout', 5_000, 30),
    callSites: false,
    ...(prefix !== undefined && { keyPrefix: prefix }),
  };
  return createClient({ redis: connectionFor(args, env), ...options });
}

function connectionFor({ text, flags }: Arguments, env: Environment): Redis | Cluster {
  const given = (['url', 'cluster', 'sentinel'] as const).filter((way) => text[way] !== undefined);
  if (given.length > 1) throw new UsageError(`give one of --${given.join(' and --')}`);
  // An option on the command line is stronger than every variable.
  const from = given.length > 0 ? text : variables(env);
  const tls = tlsOptions(flags.has('tls'), env);
  const db = text.db === undefined ? undefined : Number(text.db);
  if (db !== undefined && !(Number.isSafeInteger(db) && db >= 0))
    throw new UsageError('--db must be a number of at least 0');
  const own = {
    lazyConnect: true,
    ...(env['HOLDFAST_USERNAME'] !== undefined && { username: env['HOLDFAST_USERNAME'] }),
    ...(env['HOLDFAST_PASSWORD'] !== undefined && { password: env['HOLDFAST_PASSWORD'] }),
    ...(db !== undefined && { db }),
    ...(tls !== undefined && { tls }),
  };
  if (from.cluster !== undefined) {
    if (db !== undefined) throw new UsageError('a cluster has no databases: leave out --db');
    return new Cluster(addressesOf(from.cluster, 'cluster'), { lazyConnect: true, redisOptions: own });
  }
  if (from.sentinel !== undefined) {
    const [, name, addresses] = /^([^@]+)@(.+)$/.exec(from.sentinel) ?? [];
    if (name === undefined || addresses === undefined) {
      throw new UsageError('--sentinel must be <master name>@<host>:<port>[,<host>:<port>...]');
    }
    const sentinelPassword = env['HOLDFAST_SENTINEL_PASSWORD'];
    return new Redis({
      ...own,
      name,
      sentinels: addressesOf(addresses, 'sentinel'),
      ...(sentinelPassword !== undefined && { sentinelPassword }),
      ...(tls !== undefined && { enableTLSForSentinelMode: true, sentinelTLS: tls }),
    });
  }
  return new Redis(checkedUrl(from.url ?? 'redis://127.0.0.1:6379', given.length > 0), own);
}

/** Other programs set `REDIS_URL`, so each variable of the command is stronger. */
function urlIn(env: Environment): { url?: string } {
  const url = env['HOLDFAST_URL'] ?? env['REDIS_URL'];
  return url === undefined ? {} : { url };
}

const variables = (env: Environment): { url?: string; cluster?: string; sentinel?: string } => ({
  ...urlIn(env),
  ...(env['HOLDFAST_CLUSTER'] !== undefined && { cluster: env['HOLDFAST_CLUSTER'] }),
  ...(env['HOLDFAST_SENTINEL'] !== undefined && { sentinel: env['HOLDFAST_SENTINEL'] }),
});

/** Messages do not repeat the address, because it may have a password. */
function checkedUrl(url: string, isArgument: boolean): string {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new UsageError('the URL cannot be read; expected redis://<host>:<port>/<database>');
  }
  if (!/^(redis|valkey)s?:$/.test(parsed.protocol))
    throw new UsageError('the URL must begin with redis://, rediss://, valkey:// or valkeys://');
  if (!/^\/?\d*$/.test(parsed.pathname)) throw new UsageError('the path of the URL must be the number of a database');
  if (isArgument && (parsed.password !== '' || parsed.searchParams.has('password'))) {
    throw new UsageError(
      '--url has a password, which every user of this machine can see; set HOLDFAST_PASSWORD or HOLDFAST_URL instead',
    );
  }
  return url.replace(/^[a-z]+:/i, ['rediss:', 'valkeys:'].includes(parsed.protocol) ? 'rediss:' : 'redis:');
}

function addressesOf(text: string, option: string): Address[] {
  return text.split(',').map((each) => {
    const [, host, port] = /^(?:([^:[\]]+)|\[[\da-f:]+\]):(\d{1,5})$/i.exec(each.trim()) ?? [];
    if (port === undefined) throw new UsageError(`--${option} must list <host>:<port>, separated by commas`);
    return { host: host ?? each.trim().slice(1, each.trim().lastIndexOf(']')), port: Number(port) };
  });
}

function tlsOptions(wanted: boolean, env: Environment): RedisOptions['tls'] {
  const file = (variable: string): Buffer | undefined => {
    const path = env[variable];
    if (path === undefined) return undefined;
    try {
      return readFileSync(path);
    } catch (error) {
      throw new UsageError(`${variable}: ${(error as Error).message}`);
    }
  };
  const [ca, cert, key] = ['HOLDFAST_TLS_CA', 'HOLDFAST_TLS_CERT', 'HOLDFAST_TLS_KEY'].map(file);
  const servername = env['HOLDFAST_TLS_SERVERNAME'];
  const isOn = wanted || env['HOLDFAST_TLS'] === '1' || [ca, cert, key].some((value) => value !== undefined);
  if (!isOn) return undefined;
  return {
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
    ...(servername !== undefined && { servername }),
  };
}
