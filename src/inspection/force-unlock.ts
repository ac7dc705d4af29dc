import type { Reports } from '../diagnostics/reports.js';
import { InvalidArgumentError, RedisUnavailableError } from '../errors.js';
import { groupOf, nameOf, type Named } from '../lock-name.js';
import { refuseUnknown, type ResolvedOptions } from '../options.js';
import { NO_ROLL, type ProtocolPort } from '../protocols/protocol-port.js';
import { isOwner } from '../protocols/plain-lock-protocol.js';
import * as keys from '../redis/keys.js';
import { forceUnlock as script } from '../redis/scripts/object.js';
import { cancel } from '../redis/scripts/request.js';
import type { Lanes } from '../synchronizers/lanes.js';
import type { WaitLines } from '../waiting/wait-lines.js';

/** The options of {@link LockClient.forceUnlock}. */
export interface ForceUnlockOptions {
  /** The owner id that must still have the lock, as `inspect()` or `list()` showed it. */
  ifOwner: string;
  /** The user who frees the lock, for the event `forceUnlocked`: a name of at most 200 characters. */
  by?: string | undefined;
  /** The network address of that user, for the event `forceUnlocked`. */
  address?: string | undefined;
}

/** The services of the client that a force unlock uses. */
export interface Forcing {
  readonly options: Pick<ResolvedOptions, 'fairLockWaitTimeout'>;
  readonly port: ProtocolPort;
  readonly reports: Reports;
  readonly lanes: Lanes;
  readonly lines: WaitLines;
}

/** @throws {InvalidArgumentError} The options name no owner. */
export function checkForceOptions(options: ForceUnlockOptions): ForceUnlockOptions {
  if (typeof options !== 'object' || (options as unknown) === null) {
    throw new InvalidArgumentError('options', 'an object with ifOwner', options);
  }
  refuseUnknown('options', options, ['ifOwner', 'by', 'address']);
  const { ifOwner, by, address } = options;
  if (typeof ifOwner !== 'string' || !isOwner(ifOwner)) {
    throw new InvalidArgumentError('ifOwner', 'an owner id that inspect() or list() shows', ifOwner);
  }
  for (const [option, value] of Object.entries({ by, address })) {
    if (value !== undefined && (typeof value !== 'string' || value.length > 200)) {
      throw new InvalidArgumentError(option, 'a string of at most 200 characters', value);
    }
  }
  return { ifOwner, by, address };
}

/** Frees the lock if the owner has it, and reports the attempt. */
export async function forceUnlock(forcing: Forcing, named: Named, options: ForceUnlockOptions): Promise<boolean> {
  const { port, reports } = forcing;
  const name = nameOf(named);
  const lock = { name, group: groupOf(named) };
  const attempt = { owner: options.ifOwner, by: options.by, address: options.address };
  try {
    const isFreed = await request(forcing, port.keyPrefix + name, options.ifOwner);
    reports.report('forceUnlocked', lock, { ...attempt, result: isFreed ? 'freed' : 'not the owner' });
    return isFreed;
  } catch (cause) {
    reports.report('forceUnlocked', lock, { ...attempt, result: 'failed', cause });
    throw cause;
  }
}

/**
 * The request has a lane, because a thread of Redisson has the same owner id when
 * it locks again: a repeat of the request must not free that hold.
 */
async function request(forcing: Forcing, key: string, owner: string): Promise<boolean> {
  const { lanes, lines, options, port } = forcing;
  const { clientId, executor, publish } = port;
  const requests = keys.requestsKey(key, clientId);
  const lockKeys = [key, keys.fairQueueKey(key), keys.fairTimeoutsKey(key), keys.fairAliveKey(key), requests] as const;
  const channels = [keys.lockChannel(key), keys.readWriteChannel(key)] as const;
  try {
    const freed = await lanes.once(
      requests,
      ({ number, sequence }) =>
        executor.run(
          script,
          [...lockKeys],
          [
            owner,
            publish,
            ...channels,
            keys.readHoldBase(key),
            ...(port.rollOf?.(key) ?? NO_ROLL),
            options.fairLockWaitTimeout,
            number,
            sequence,
          ],
        ),
      ({ number, sequence }) => executor.run(cancel, [requests], [number, sequence]),
    );
    if (freed) lines.force({ key }, [owner], false);
    return freed;
  } catch (error) {
    if (error instanceof RedisUnavailableError && error.outcome === 'unknown') lines.force({ key }, [owner], true);
    throw error;
  }
}
