import type { Tenure } from '../holding/tenure.js';
import { isForeign, isOwner } from '../protocols/plain-lock-protocol.js';
import type { InspectReply } from '../redis/scripts/object.js';

/** An open lock of a client, as `client.holds()` lists it. */
export interface HoldInfo {
  readonly lockName: string;
  /** The owner id in Redis: `<client id>:<number>`. */
  readonly owner: string;
  /** Number of open holds of this owner. */
  readonly holdCount: number;
  /** Time since the outermost of the holds was opened, in milliseconds. */
  readonly age: number;
  /** The line of code that opened the outermost hold; `undefined` if `callSites` is off. */
  readonly callSite: string | undefined;
}

/** @internal */
export const holdInfoOf = ({ protocol, owner, holds }: Tenure, now: number): HoldInfo => ({
  lockName: protocol.name,
  owner,
  holdCount: holds.length,
  age: Math.round(now - (holds[0]?.openedAt ?? now)),
  callSite: holds[0]?.site?.toString(),
});

export interface OwnerInspection {
  /** `<client id>:<number>`; a JVM's number is its thread id. */
  readonly owner: string;
  readonly holdCount: number;
  readonly mode: 'exclusive' | 'read' | 'write';
  /** Whether the owner is this client. */
  readonly isThisClient: boolean;
}

export interface PermitInspection {
  readonly id: string;
  /** ms until it comes back by itself; -1: it has no lease, 0: its lease is over and nobody has noticed yet. */
  readonly remaining: number;
}

/** What `client.inspect(name)` found under a name, as far as the keys show it. */
export interface Inspection {
  readonly name: string;
  /** `permits`: some are taken of a permit-expirable semaphore, which is a `counter` otherwise. `lock` stands for plain, spin, non-reentrant and a fair lock without queue, which look alike. `unknown`: something that is not of this package, such as a hash without an owner; see `type`. */
  readonly kind: 'free' | 'lock' | 'fenced' | 'fair' | 'read-write' | 'group' | 'counter' | 'permits' | 'unknown';
  /** Redis's type of the key, such as `hash`; `none`: there is no key. */
  readonly type: string;
  readonly owners: readonly OwnerInspection[];
  /** Owners that wait in a fair lock's queue, head first. */
  readonly queue: readonly string[];
  /** ms of lease left; -1: no expiry, -2: nothing there. */
  readonly remaining: number;
  /** Value of a semaphore or latch. */
  readonly value: string | undefined;
  /** Permits that are taken, those whose lease ends first in front. */
  readonly permits: readonly PermitInspection[];
}

export function inspectionOf(name: string, clientId: string, reply: InspectReply): Inspection {
  const { type, pttl, content, queue, token } = reply;
  const permits: PermitInspection[] = [];
  for (let i = 0; i + 1 < reply.permits.length; i += 2) {
    permits.push({ id: String(reply.permits[i]), remaining: Number(reply.permits[i + 1]) });
  }
  const found = (kind: Inspection['kind'], owners: readonly OwnerInspection[] = [], value?: string): Inspection => {
    return { name, kind, type, owners, queue, remaining: pttl, value, permits };
  };
  if (permits.length > 0) return found('permits', [], content[0]);
  if (type === 'none') return found(queue.length > 0 ? 'fair' : 'free');
  if (type === 'string') return found(COUNT.test(content[0] ?? '') ? 'counter' : 'unknown', [], content[0]);
  if (type !== 'hash') return found('unknown');
  const fields = new Map<string, string>();
  for (let i = 0; i + 1 < content.length; i += 2) fields.set(content[i] as string, content[i + 1] as string);
  if (isForeign([...fields.keys()])) return found('unknown');
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

/** What Redis counts with. */
const COUNT = /^-?\d+$/;
const GROUP_FIELD = /^[^:]+:(.+):lock_count$/;

/** Each owner once, with the most holds that it has of any value. */
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
