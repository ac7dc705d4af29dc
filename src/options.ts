import { InvalidArgumentError } from './errors.js';
import { checkMaxHoldTime } from './lease-time.js';
import { FAIR_REFRESH_MS, MIN_RENEWED_LEASE_MS } from './timing.js';

/** Limits of local hand-overs. See `handOff` in {@link ClientOptions}. */
export interface HandOffOptions {
  /**
   * Number of sections in a row that stay in this process while other clients wait.
   *
   * @defaultValue 16. With `local`, sections without a request are limited by time alone, unless this option is set.
   */
  maxSections?: number | undefined;
  /**
   * Time, in milliseconds, that a row of sections may last while other clients wait.
   *
   * @defaultValue 100, or `local` if that is longer
   */
  maxTime?: number | undefined;
  /**
   * Time, in milliseconds, after the client asked Redis for the lock, for which sections of this process may follow one
   * another without a request to Redis. From 0 to `lockWatchdogTimeout`. If the lock is lost in Redis meanwhile, by a
   * forced unlock elsewhere, `DEL`, a restart or a failover, sections may still begin for this time. The crash of a holder
   * delays other clients by up to this time. For one exclusive lock: see docs/hot-locks.md for the kinds.
   *
   * @defaultValue 0: Redis confirms every section
   */
  local?: number | undefined;
  /**
   * Time, in milliseconds, for which a lock that no call of this process waits for stays with this client after its last
   * section, so that the next call enters without a request. From 0 to `local`: the lock is released at the latest `local`
   * ms after the client asked Redis for it. Other clients wait for that time.
   *
   * @defaultValue 0: the lock is free after its last section
   */
  keep?: number | undefined;
}

/** What the release of a hold waits for. See `release` in {@link AcquireOptions}. */
export type ReleaseMode = 'awaited' | 'background';

/** How many replicas confirm a grant. See `replicas` in {@link ClientOptions}. */
export interface ReplicasOptions {
  /**
   * Number of replicas that must confirm a grant. 0 turns the confirmation off.
   *
   * @defaultValue 1 while at least one replica is connected, 0 otherwise
   */
  acks?: number | undefined;
  /** Time, in milliseconds, to wait for the replicas. @defaultValue 1,000 */
  timeout?: number | undefined;
}

/** The answer of the option `credentials` of {@link ClientOptions}. */
export interface Credentials {
  /** The user. Without it, the password is that of the user `default`. */
  username?: string | undefined;
  /** The password or token. */
  password: string;
  /** Time, in milliseconds, until the password ends. The client asks again after 80 % of it. */
  expiresIn?: number | undefined;
}

/** Returns the credentials that are right now. See `credentials` in {@link ClientOptions}. */
export type CredentialsFunction = () => Credentials | Promise<Credentials>;

/** The options of {@link createClient}, apart from the connection. All times are milliseconds. */
export interface ClientOptions {
  /**
   * Returns the user and the password, for passwords that change and for tokens. The client calls it before it opens each
   * of its connections, and again after 80 % of `expiresIn`, if there is one: then it authenticates the open connection
   * again. An error of this function counts as an error of the connection: the client tries again. The function must
   * answer within 10 seconds.
   *
   * @defaultValue the user and the password of `url` or `redis`
   */
  credentials?: CredentialsFunction | undefined;
  /**
   * Lease, in milliseconds, of a hold that has no `leaseTime`. The watchdog renews it every third of this time.
   * Minimum:
   * 100. Redisson has the same option and default.
   *
   * @defaultValue 30,000
   */
  lockWatchdogTimeout?: number | undefined;
  /**
   * Longest time, in milliseconds, for which the watchdog renews a hold, counted from its grant: at least 100, or
   * `Infinity`. Then the hold is lost with the reason `maxHoldTime`, and the lock is free. Holds with a lease of their own
   * that is not renewed are not affected. A call may set another time: see `maxHoldTime` in {@link AcquireOptions}.
   *
   * @defaultValue `Infinity`: the watchdog renews a hold until its release
   */
  maxHoldTime?: number | undefined;
  /**
   * Time, in milliseconds, after which Redisson removes the head of a fair lock's queue as abandoned. A waiter further
   * back adds this time once for each waiter in front of it. All clients of a lock must use the same value. Minimum:
   * 3,000. Redisson has the same option and default.
   *
   * @defaultValue 300,000
   */
  fairLockWaitTimeout?: number | undefined;
  /**
   * Time, in milliseconds, after which a fair-lock waiter that sends no refresh is removed from the queue. Minimum:
   * 1,000.
   *
   * @defaultValue 5,000
   */
  fairWaiterTimeout?: number | undefined;
  /**
   * Time, in milliseconds, within which one command settles, with all its attempts. Minimum: 30. @defaultValue 3,000
   */
  commandTimeout?: number | undefined;
  /**
   * Prefix of every name, as with a name mapper of Redisson.
   *
   * @defaultValue the `keyPrefix` of the given ioredis connection, or none
   */
  keyPrefix?: string | undefined;
  /**
   * Limits of local hand-overs: a releasing owner passes the lock straight to the next waiter of this process. `false`
   * turns hand-overs off.
   *
   * @defaultValue 16 sections or 100 ms while other clients wait
   */
  handOff?: HandOffOptions | false | undefined;
  /**
   * What the end of `withLock`, `hold.release()` and an `await using` block waits for, if the call does not say it:
   * `'awaited'`, for the reply of Redis; `'background'`, until the release has been written to the connection. A failed
   * release in the background causes the event `releaseFailed`. `unlock()` always waits for the reply.
   *
   * @defaultValue `'awaited'`
   */
  release?: ReleaseMode | undefined;
  /**
   * Number of replicas that must have the lock before it is granted (`WAIT`). If too few confirm in time, the client
   * releases the lock. A call with a `waitTime` tries again until that has passed. Then, and without a `waitTime`, the call
   * rejects with `NotReplicatedError`.
   *
   * @defaultValue one replica in a cluster and through Sentinel, off with a single server
   */
  replicas?: ReplicasOptions | undefined;
  /**
   * In a cluster: whether the client uses sharded pub/sub (`SSUBSCRIBE`, Redis 7 and Valkey). All clients of a lock
   * must use the same value. `'auto'` uses it if the servers support it, as Redisson does.
   *
   * @defaultValue `'auto'`
   */
  shardedSubscriptions?: boolean | 'auto' | undefined;
  /**
   * Whether the client records the line of code that acquired each hold. Messages and `holds()` show it.
   *
   * @defaultValue `true`, or `false` if `NODE_ENV` is `production`
   */
  callSites?: boolean | undefined;
  /**
   * Name of this client, such as the name of the service, with at most 100 characters. Together with the host and the
   * process id it is part of the names of the client's connections, so that `list()` and `CLIENT LIST` show which
   * process holds a lock.
   *
   * @defaultValue the `connectionName` of the given ioredis connection, or none
   */
  clientName?: string | undefined;
}

/** Resolved {@link ReplicasOptions}. */
export interface ReplicaOptions {
  readonly acks: number;
  readonly timeout: number;
  /** Whether the user set `acks`: then the client waits even if no replica is connected. */
  readonly always: boolean;
}

/** Resolved {@link HandOffOptions}. */
export interface ResolvedHandOff {
  /** After so many sections in a row, the next request of the streak asks whether other clients wait. */
  readonly maxSections: number;
  /** So many sections in a row may follow one another before such a request. */
  readonly maxLocalSections: number;
  readonly maxTimeMs: number;
  readonly localMs: number;
  readonly keepMs: number;
}

/** The options of a client with every default filled in. */
export interface ResolvedOptions {
  readonly lockWatchdogTimeout: number;
  readonly maxHoldTime: number;
  readonly fairLockWaitTimeout: number;
  readonly fairWaiterTimeout: number;
  readonly fairRefreshMs: number;
  readonly commandTimeout: number;
  /** Time for one attempt, in milliseconds. Three attempts fit into a command deadline. */
  readonly attemptMs: number;
  readonly keyPrefix: string;
  readonly handOff: ResolvedHandOff | undefined;
  readonly release: ReleaseMode;
  readonly replicas: ReplicaOptions | undefined;
  readonly shardedSubscriptions: boolean | 'auto';
  readonly callSites: boolean;
  /** The empty string if there is none. */
  readonly clientName: string;
  readonly credentials: CredentialsFunction | undefined;
}

const DEFAULTS = Object.freeze({
  lockWatchdogTimeout: 30_000,
  fairLockWaitTimeout: 300_000,
  fairWaiterTimeout: 5_000,
  commandTimeout: 3_000,
  replicasTimeout: 1_000,
  handOff: Object.freeze({ maxSections: 16, maxTime: 100 }),
});

const CLIENT_OPTIONS: Record<keyof ClientOptions | 'url' | 'redis', true> = {
  url: true,
  redis: true,
  credentials: true,
  lockWatchdogTimeout: true,
  maxHoldTime: true,
  commandTimeout: true,
  keyPrefix: true,
  handOff: true,
  release: true,
  replicas: true,
  shardedSubscriptions: true,
  callSites: true,
  clientName: true,
  fairLockWaitTimeout: true,
  fairWaiterTimeout: true,
};
const HAND_OFF_OPTIONS: Record<keyof HandOffOptions, true> = {
  maxSections: true,
  maxTime: true,
  local: true,
  keep: true,
};
const REPLICAS_OPTIONS: Record<keyof ReplicasOptions, true> = { acks: true, timeout: true };

/** A misspelled option would silently leave its default in force. */
export function refuseUnknown(option: string, given: object, known: readonly string[]): void {
  for (const key of Object.keys(given)) {
    if (known.includes(key)) continue;
    // The error does not carry the value: a misspelled option may hold a password.
    const expectation = `one of ${known.join(', ')}`;
    const path = option === 'options' ? key : `${option}.${key}`;
    throw new InvalidArgumentError(path, expectation, undefined, `unknown option "${path}"; expected ${expectation}`);
  }
}

/**
 * Refuses lone surrogates. UTF-8 cannot encode them, so each would reach Redis as U+FFFD: different names would share
 * one key, and a message would name a channel that no waiter subscribed to.
 */
export function checkWellFormed(text: string, argument: string): string {
  if (/\p{Surrogate}/u.test(text)) {
    throw new InvalidArgumentError(argument, 'well-formed text, without lone surrogates', text);
  }
  return text;
}

/** The largest number of characters of a `clientName`: every line of `CLIENT LIST` carries it. */
const MAX_NAME = 100;

export function resolveOptions(given: ClientOptions, prefixOfRedis: string, nameOfRedis = ''): ResolvedOptions {
  refuseUnknown('options', given, Object.keys(CLIENT_OPTIONS));
  const lockWatchdogTimeout = integer(given, 'lockWatchdogTimeout', DEFAULTS.lockWatchdogTimeout, MIN_RENEWED_LEASE_MS);
  const fairWaiterTimeout = integer(given, 'fairWaiterTimeout', DEFAULTS.fairWaiterTimeout, 1_000);
  const commandTimeout = integer(given, 'commandTimeout', DEFAULTS.commandTimeout, 30);
  const { keyPrefix = prefixOfRedis, shardedSubscriptions = 'auto' } = given;
  if (typeof keyPrefix !== 'string') throw new InvalidArgumentError('keyPrefix', 'a string', keyPrefix);
  checkWellFormed(keyPrefix, 'keyPrefix');
  const { callSites = process.env['NODE_ENV'] !== 'production' } = given;
  if (typeof callSites !== 'boolean') throw new InvalidArgumentError('callSites', 'true or false', callSites);
  const { clientName = nameOfRedis.slice(0, MAX_NAME) } = given;
  if (typeof clientName !== 'string' || clientName.length > MAX_NAME) {
    throw new InvalidArgumentError('clientName', `a string of at most ${MAX_NAME} characters`, clientName);
  }
  checkWellFormed(clientName, 'clientName');
  const { credentials } = given;
  if (credentials !== undefined && typeof credentials !== 'function') {
    // The error does not carry the value, which may be a password.
    const expectation = 'a function that returns { username, password }';
    throw new InvalidArgumentError('credentials', expectation, undefined, `credentials must be ${expectation}`);
  }
  if (shardedSubscriptions !== 'auto' && typeof shardedSubscriptions !== 'boolean') {
    throw new InvalidArgumentError('shardedSubscriptions', `true, false or 'auto'`, shardedSubscriptions);
  }
  return {
    lockWatchdogTimeout,
    maxHoldTime: checkMaxHoldTime(given.maxHoldTime) ?? Infinity,
    fairLockWaitTimeout: integer(given, 'fairLockWaitTimeout', DEFAULTS.fairLockWaitTimeout, 3_000),
    fairWaiterTimeout,
    fairRefreshMs: Math.min(FAIR_REFRESH_MS, Math.floor(fairWaiterTimeout / 3)),
    commandTimeout,
    attemptMs: Math.floor(commandTimeout / 3),
    keyPrefix,
    handOff: resolveHandOff(given.handOff, lockWatchdogTimeout),
    release: checkReleaseMode(given.release) ?? 'awaited',
    replicas: resolveReplicas(given.replicas),
    shardedSubscriptions,
    callSites,
    clientName,
    credentials,
  };
}

export function checkReleaseMode(given: unknown): ReleaseMode | undefined {
  if (given === undefined || given === 'awaited' || given === 'background') return given;
  throw new InvalidArgumentError('release', `'awaited' or 'background'`, given);
}

function resolveHandOff(given: ClientOptions['handOff'], longestMs: number): ResolvedHandOff | undefined {
  if (given === false) return undefined;
  if (given !== undefined && (typeof given !== 'object' || given === null)) {
    throw new InvalidArgumentError('handOff', 'an object or false', given);
  }
  refuseUnknown('handOff', given ?? {}, Object.keys(HAND_OFF_OPTIONS));
  const localMs = integer(given ?? {}, 'local', 0, 0, 'handOff.', longestMs);
  return {
    maxSections: integer(given ?? {}, 'maxSections', DEFAULTS.handOff.maxSections, 1, 'handOff.'),
    maxLocalSections: given?.maxSections ?? Infinity,
    // A shorter time would end a streak, and make a kept lock useless, before `local` and `keep` do.
    maxTimeMs: integer(given ?? {}, 'maxTime', Math.max(DEFAULTS.handOff.maxTime, localMs), 0, 'handOff.'),
    localMs,
    keepMs: integer(given ?? {}, 'keep', 0, 0, 'handOff.', localMs),
  };
}

function resolveReplicas(given: ClientOptions['replicas']): ReplicaOptions | undefined {
  if (given !== undefined && (typeof given !== 'object' || (given as unknown) === null)) {
    throw new InvalidArgumentError('replicas', 'an object', given);
  }
  refuseUnknown('replicas', given ?? {}, Object.keys(REPLICAS_OPTIONS));
  const acks = integer(given ?? {}, 'acks', 1, 0, 'replicas.');
  // WAIT with a timeout of 0 waits forever.
  const timeout = integer(given ?? {}, 'timeout', DEFAULTS.replicasTimeout, 1, 'replicas.');
  return acks === 0 ? undefined : { acks, timeout, always: given?.acks !== undefined };
}

/** The longest time that setTimeout supports. */
const MAX_MS = 2 ** 31 - 1;

function integer<K extends string>(
  from: { [P in K]?: number | undefined },
  option: K,
  defaultValue: number,
  min: number,
  path = '',
  max = MAX_MS,
): number {
  const { [option]: given } = from;
  const value = given === undefined ? defaultValue : given; // `null` is refused
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new InvalidArgumentError(path + option, `an integer from ${min} to ${max}`, value);
  }
  return value;
}
