import { InvalidArgumentError } from './errors.js';

export interface HandOffOptions {
  /** Sections in a row that stay in this process while other clients wait. Default 16. */
  maxSections?: number | undefined;
  /** ms that a row of sections may last while other clients wait. Default 100. */
  maxTime?: number | undefined;
}

export interface ReplicasOptions {
  /** Replicas that must confirm. 0: none is waited for. Default 1, as long as any replica is connected. */
  acks?: number | undefined;
  /** ms to wait for them. Default 1,000. */
  timeout?: number | undefined;
}

export interface ClientOptions {
  /** ms of lease for acquisitions without one; renewed at a third of it. Default 30,000, as in Redisson. */
  lockWatchdogTimeout?: number | undefined;
  /**
   * ms that a waiter of a fair lock adds to the time after which a JVM takes those behind it for abandoned. Must be the
   * same for all clients of a lock. At least 3,000; default 300,000, as in Redisson.
   */
  fairLockWaitTimeout?: number | undefined;
  /** ms without a sign of life after which a waiter of a fair lock loses its place. At least 1,000; default 5,000. */
  fairWaiterTimeout?: number | undefined;
  /** ms within which one command settles, with all its attempts. Default 3,000. */
  commandTimeout?: number | undefined;
  /** Put in front of every name, as a Redisson name mapper would. Default: ioredis's own `keyPrefix`, else none. */
  keyPrefix?: string | undefined;
  /** How long a lock may go from hand to hand inside this process; `false`: every release goes through Redis. */
  handOff?: HandOffOptions | false | undefined;
  /**
   * A lock is granted when this many replicas have it (`WAIT`); else it is given back and the call rejects with
   * `NotReplicatedError`. Default: on in a cluster and through Sentinel, off with a single server.
   */
  replicas?: ReplicasOptions | undefined;
  /**
   * In a cluster: messages by slot (`SSUBSCRIBE`, Redis 7 and Valkey). Must be the same for all clients of a lock.
   * Default `'auto'`: where the servers can, as Redisson.
   */
  shardedSubscriptions?: boolean | 'auto' | undefined;
  /** Keep the line that took each hold, for messages. Default: on, unless `NODE_ENV` is `production`. */
  callSites?: boolean | undefined;
}

export interface ReplicaOptions {
  readonly acks: number;
  readonly timeout: number;
  /** Asked for by the user: also where no replica is connected. */
  readonly always: boolean;
}

export interface ResolvedOptions {
  readonly lockWatchdogTimeout: number;
  readonly renewEveryMs: number;
  readonly fairLockWaitTimeout: number;
  readonly fairWaiterTimeout: number;
  readonly fairRefreshMs: number;
  readonly commandTimeout: number;
  /** One of the three attempts that fit into a command deadline. */
  readonly attemptMs: number;
  readonly keyPrefix: string;
  readonly handOff: { readonly maxSections: number; readonly maxTimeMs: number } | undefined;
  readonly replicas: ReplicaOptions | undefined;
  readonly shardedSubscriptions: boolean | 'auto';
  readonly callSites: boolean;
}

/** How often the places of fair waiters are refreshed, if their time-out leaves room for three of it. */
const FAIR_REFRESH_MS = 1_000;

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
  lockWatchdogTimeout: true,
  commandTimeout: true,
  keyPrefix: true,
  handOff: true,
  replicas: true,
  shardedSubscriptions: true,
  callSites: true,
  fairLockWaitTimeout: true,
  fairWaiterTimeout: true,
};
const HAND_OFF_OPTIONS: Record<keyof HandOffOptions, true> = { maxSections: true, maxTime: true };
const REPLICAS_OPTIONS: Record<keyof ReplicasOptions, true> = { acks: true, timeout: true };

/** A misspelt option would leave its default in force, and nobody would know. */
export function refuseUnknown(option: string, given: object, known: readonly string[]): void {
  for (const key of Object.keys(given)) {
    if (known.includes(key)) continue;
    // Not its value: it may be a password.
    throw new InvalidArgumentError(`${option}.${key}`, `absent (known here: ${known.join(', ')})`, 'given');
  }
}

/**
 * UTF-8 has no lone surrogates: on the way to Redis each becomes U+FFFD. Different names would share one key, and a
 * message would name a channel that no waiter listens to.
 */
export function checkWellFormed(text: string, argument: string): string {
  if (/\p{Surrogate}/u.test(text)) {
    throw new InvalidArgumentError(argument, 'well-formed text, without lone surrogates', text);
  }
  return text;
}

export function resolveOptions(given: ClientOptions, prefixOfRedis: string): ResolvedOptions {
  refuseUnknown('options', given, Object.keys(CLIENT_OPTIONS));
  const lockWatchdogTimeout = integer(given, 'lockWatchdogTimeout', DEFAULTS.lockWatchdogTimeout, 100);
  const fairWaiterTimeout = integer(given, 'fairWaiterTimeout', DEFAULTS.fairWaiterTimeout, 1_000);
  const commandTimeout = integer(given, 'commandTimeout', DEFAULTS.commandTimeout, 30);
  const keyPrefix = given.keyPrefix ?? prefixOfRedis;
  if (typeof keyPrefix !== 'string') throw new InvalidArgumentError('keyPrefix', 'a string', keyPrefix);
  checkWellFormed(keyPrefix, 'keyPrefix');
  const callSites = given.callSites ?? process.env['NODE_ENV'] !== 'production';
  if (typeof callSites !== 'boolean') throw new InvalidArgumentError('callSites', 'true or false', callSites);
  const shardedSubscriptions = given.shardedSubscriptions ?? 'auto';
  if (shardedSubscriptions !== 'auto' && typeof shardedSubscriptions !== 'boolean') {
    throw new InvalidArgumentError('shardedSubscriptions', `true, false or 'auto'`, shardedSubscriptions);
  }
  return {
    lockWatchdogTimeout,
    renewEveryMs: Math.floor(lockWatchdogTimeout / 3),
    fairLockWaitTimeout: integer(given, 'fairLockWaitTimeout', DEFAULTS.fairLockWaitTimeout, 3_000),
    fairWaiterTimeout,
    fairRefreshMs: Math.min(FAIR_REFRESH_MS, Math.floor(fairWaiterTimeout / 3)),
    commandTimeout,
    attemptMs: Math.floor(commandTimeout / 3),
    keyPrefix,
    handOff: resolveHandOff(given.handOff),
    replicas: resolveReplicas(given.replicas),
    shardedSubscriptions,
    callSites,
  };
}

function resolveHandOff(given: ClientOptions['handOff']): ResolvedOptions['handOff'] {
  if (given === false) return undefined;
  if (given !== undefined && (typeof given !== 'object' || given === null)) {
    throw new InvalidArgumentError('handOff', 'an object or false', given);
  }
  refuseUnknown('handOff', given ?? {}, Object.keys(HAND_OFF_OPTIONS));
  return {
    maxSections: integer(given ?? {}, 'maxSections', DEFAULTS.handOff.maxSections, 1, 'handOff.'),
    maxTimeMs: integer(given ?? {}, 'maxTime', DEFAULTS.handOff.maxTime, 0, 'handOff.'),
  };
}

function resolveReplicas(given: ClientOptions['replicas']): ReplicaOptions | undefined {
  if (given !== undefined && (typeof given !== 'object' || (given as unknown) === null)) {
    throw new InvalidArgumentError('replicas', 'an object', given);
  }
  refuseUnknown('replicas', given ?? {}, Object.keys(REPLICAS_OPTIONS));
  const acks = integer(given ?? {}, 'acks', 1, 0, 'replicas.');
  // A time-out of 0 would wait for ever.
  const timeout = integer(given ?? {}, 'timeout', DEFAULTS.replicasTimeout, 1, 'replicas.');
  return acks === 0 ? undefined : { acks, timeout, always: given?.acks !== undefined };
}

/** setTimeout cannot count further. */
const MOST = 2 ** 31 - 1;

function integer<K extends string>(
  from: { [P in K]?: number | undefined },
  option: K,
  byDefault: number,
  least: number,
  of = '',
): number {
  const value = from[option] ?? byDefault;
  if (!Number.isInteger(value) || value < least || value > MOST) {
    throw new InvalidArgumentError(of + option, `an integer of at least ${least} and at most ${MOST}`, value);
  }
  return value;
}
