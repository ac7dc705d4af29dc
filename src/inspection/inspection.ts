import { isForeign, isOwner } from '../protocols/plain-lock-protocol.js';
import type { InspectReply } from '../redis/scripts/object.js';
import { timeLeftNumber } from '../lease-time.js';

/** An owner of a lock, as {@link LockClient.inspect} found it in Redis. */
export interface OwnerInspection {
  /** The owner id: `<client id>:<number>`. In an owner id of Redisson, the number is a thread id. */
  readonly owner: string;
  /** Number of holds of the owner. In a group multi-lock: the largest number of holds of any of its values. */
  readonly holdCount: number;
  /** `read` and `write` for the halves of a read-write lock, `exclusive` for every other lock. */
  readonly mode: 'exclusive' | 'read' | 'write';
  /** Whether the owner belongs to the inspecting client. */
  readonly isThisClient: boolean;
}

/** A taken permit of a permit-expirable semaphore, as {@link LockClient.inspect} found it in Redis. */
export interface PermitInspection {
  /** The id of the permit. */
  readonly id: string;
  /**
   * Rest of the lease in milliseconds. -1: the permit has no lease. 0: the lease has ended, but Redis still counts the
   * permit as taken.
   */
  readonly remaining: number;
}

/** The result of {@link LockClient.inspect}: what Redis stores under a name. */
export interface Inspection {
  /** The inspected name, without the key prefix. */
  readonly name: string;
  /**
   * The kind of object, as far as its keys show it. Some kinds look alike in Redis:
   * - `free`: there is no key.
   * - `lock`: a held plain, spin or non-reentrant lock, or a held fair lock without waiters.
   * - `fenced`: a held fenced lock.
   * - `fair`: a fair lock with waiters.
   * - `read-write`: a held read-write lock.
   * - `group`: held values of a group multi-lock.
   * - `counter`: a semaphore, a latch, or a permit-expirable semaphore without taken permits.
   * - `permits`: a permit-expirable semaphore with taken permits.
   * - `unknown`: a key that no lock or synchronizer wrote, such as a hash without an owner; see `type`.
   */
  readonly kind: 'free' | 'lock' | 'fenced' | 'fair' | 'read-write' | 'group' | 'counter' | 'permits' | 'unknown';
  /** The type of the key, as the Redis command `TYPE` names it, such as `hash`. `none`: there is no key. */
  readonly type: string;
  /** The owners of a lock. */
  readonly owners: readonly OwnerInspection[];
  /** Owner ids of the waiters in the queue of a fair lock, the next owner first. */
  readonly queue: readonly string[];
  /**
   * Time until the key expires, in milliseconds; of a lock, the rest of its lease. -1: no expiry. -2: there is no key.
   */
  readonly remaining: number;
  /**
   * The value of a counter: the free permits of a semaphore, or the count of a latch. `undefined` for all others.
   */
  readonly value: string | undefined;
  /** The taken permits of a permit-expirable semaphore, ordered by the end of their leases. */
  readonly permits: readonly PermitInspection[];
}

/** Builds the inspection from the reply of the script. */
export function inspectionOf(name: string, clientId: string, reply: InspectReply): Inspection {
  const { type, left, content, queue, token } = reply;
  const permits: PermitInspection[] = [];
  for (let i = 0; i + 1 < reply.permits.length; i += 2) {
    permits.push({ id: reply.permits[i] as string, remaining: Number(reply.permits[i + 1]) });
  }
  const found = (kind: Inspection['kind'], owners: readonly OwnerInspection[] = [], value?: string): Inspection => {
    return { name, kind, type, owners, queue, remaining: timeLeftNumber(left), value, permits };
  };
  if (permits.length > 0) return found('permits', [], COUNT.test(content[0] ?? '') ? content[0] : undefined);
  if (type === 'none') return found(queue.length > 0 ? 'fair' : 'free');
  if (type === 'string') return COUNT.test(content[0] ?? '') ? found('counter', [], content[0]) : found('unknown');
  if (type !== 'hash') return found('unknown');
  const fields = new Map<string, string>();
  for (let i = 0; i + 1 < content.length; i += 2) fields.set(content[i] as string, content[i + 1] as string);
  // The script reads no field of a hash that is not a lock.
  if (fields.size === 0 || isForeign([...fields.keys()])) return found('unknown');
  const ofGroup = groupOwners(clientId, fields);
  if (ofGroup.length > 0) return found('group', ofGroup);
  const readWrite = fields.delete('mode');
  const owners = [...fields].flatMap(([field, count]) => {
    const writes = readWrite && field.endsWith(':write');
    const owner = writes ? field.slice(0, -':write'.length) : field;
    if (!isOwner(owner) || !COUNT.test(count)) return [];
    return {
      owner,
      holdCount: Number(count),
      mode: readWrite ? (writes ? ('write' as const) : ('read' as const)) : ('exclusive' as const),
      isThisClient: field.startsWith(`${clientId}:`),
    };
  });
  const kind = readWrite ? 'read-write' : queue.length > 0 ? 'fair' : token !== '' ? 'fenced' : 'lock';
  return found(kind, owners);
}

/** An integer, as Redis stores a count. */
const COUNT = /^-?\d+$/;
const GROUP_FIELD = /^[^:]+:(.+):lock_count$/;

/** Lists each owner once, with the largest number of holds that it has of any value. */
function groupOwners(clientId: string, fields: ReadonlyMap<string, string>): OwnerInspection[] {
  const counts = new Map<string, number>();
  for (const [field, count] of fields) {
    const [, owner] = GROUP_FIELD.exec(field) ?? [];
    if (owner !== undefined && isOwner(owner)) counts.set(owner, Math.max(counts.get(owner) ?? 0, Number(count)));
  }
  return [...counts].map(([owner, holdCount]) => ({
    owner,
    holdCount,
    mode: 'exclusive',
    isThisClient: owner.startsWith(`${clientId}:`),
  }));
}
