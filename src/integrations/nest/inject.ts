import { Inject } from '@nestjs/common';
import { InvalidArgumentError, type Lock, type LockClient, type LockName } from '../../index.js';
import { isLockName, KINDS, oneLock, type LockedKind } from '../shared/kinds.js';
import type { InjectLockOptions } from './options.js';

/** A lock that some class of the process injects. */
interface InjectedLock {
  readonly token: string;
  readonly lockName: string | LockName;
  readonly kind: LockedKind;
}

/** By the name of the client. Decorators run when a file is loaded, which is before Nest asks the module for its providers. */
const injected = new Map<string, Map<string, InjectedLock>>();

/**
 * The injection token of a client, for custom providers and for tests that replace it.
 *
 * @param name - the name that `forRoot()` was given; none for the client without a name.
 */
export const getLockClientToken = (name = ''): string => (name === '' ? 'HoldfastClient' : `HoldfastClient:${name}`);

/**
 * The injection token of a lock, for tests that replace it.
 *
 * @param lockName - the name of the lock.
 */
export const getLockToken = (
  lockName: string | LockName,
  { client = '', kind = 'lock' }: InjectLockOptions = {},
): string => `HoldfastLock:${client}:${kind}:${lockName.toString()}`;

/**
 * Injects a client of the module.
 *
 * @param name - the name that `forRoot()` was given; none for the client without a name.
 * @example
 * constructor(@InjectLockClient() private readonly locks: LockClient) {}
 */
export function InjectLockClient(name?: string): ParameterDecorator & PropertyDecorator {
  return Inject(getLockClientToken(name));
}

/**
 * Injects a lock. The handle is for all requests: it is a name and holds nothing. A class in a file that is loaded after the
 * application was created, such as a lazy module, injects the client instead.
 *
 * @param lockName - the name of the lock.
 * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or the kind is invalid.
 * @example
 * constructor(@InjectLock('invoices') private readonly lock: Lock) {}
 */
export function InjectLock(
  lockName: string | LockName,
  options: InjectLockOptions = {},
): ParameterDecorator & PropertyDecorator {
  const { client = '', kind = 'lock' } = options;
  if (!isLockName(lockName) && (typeof lockName !== 'string' || lockName === '')) {
    throw new InvalidArgumentError('lockName', 'a non-empty string', lockName);
  }
  if (!KINDS.includes(kind)) throw new InvalidArgumentError('kind', `one of ${KINDS.join(', ')}`, kind);
  const token = getLockToken(lockName, options);
  const ofClient = injected.get(client) ?? new Map<string, InjectedLock>();
  injected.set(client, ofClient.set(token, { token, lockName, kind }));
  return Inject(token);
}

/** A provider for each lock of a client that some class injects. */
export function lockProviders(client = '') {
  return [...(injected.get(client)?.values() ?? [])].map(({ token, lockName, kind }) => ({
    provide: token,
    useFactory: (locks: LockClient): Lock => oneLock(locks, kind, lockName),
    inject: [getLockClientToken(client)],
  }));
}
