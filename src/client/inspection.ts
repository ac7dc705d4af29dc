import type { InspectReply } from '../redis/scripts/object.js';

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
  /** `permits`: some are taken of a permit-expirable semaphore, which is a `counter` otherwise. `lock` stands for plain, spin, non-reentrant and a fair lock without queue, which look alike. */
  readonly kind: 'free' | 'lock' | 'fenced' | 'fair' | 'read-write' | 'group' | 'counter' | 'permits' | 'unknown';
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
    return { name, kind, owners, queue, remaining: pttl, value, permits };
  };
  if (permits.length > 0) return found('permits', [], content[0]);
  if (type === 'none') return found(queue.length > 0 ? 'fair' : 'free');
  if (type === 'string') return found('counter', [], content[0]);
  if (type !== 'hash') return found('unknown');
  const fields = new Map<string, string>();
  for (let i = 0; i + 1 < content.length; i += 2) fields.set(content[i] as string, content[i + 1] as string);
  if ([...fields.keys()].some((field) => GROUP_FIELD.test(field))) {
    return found('group', groupOwners(clientId, fields));
  }
  const readWrite = fields.delete('mode');
  const owners = [...fields].map(([field, count]) => {
    const writes = readWrite && field.endsWith(':write');
    return {
      owner: writes ? field.slice(0, -':write'.length) : field,
      holdCount: Number(count),
      mode: readWrite ? (writes ? ('write' as const) : ('read' as const)) : ('exclusive' as const),
      isThisClient: field.startsWith(`${clientId}:`),
    };
  });
  const kind = readWrite ? 'read-write' : queue.length > 0 ? 'fair' : token !== '' ? 'fenced' : 'lock';
  return found(kind, owners);
}

const GROUP_FIELD = /^[^:]+:(.+):lock_count$/;

/** Each owner once, with the most holds that it has of any value. */
function groupOwners(clientId: string, fields: ReadonlyMap<string, string>): OwnerInspection[] {
  const counts = new Map<string, number>();
  for (const [field, count] of fields) {
    const [, owner] = GROUP_FIELD.exec(field) ?? [];
    if (owner !== undefined) counts.set(owner, Math.max(counts.get(owner) ?? 0, Number(count)));
  }
  return [...counts].map(([owner, holdCount]) => ({
    owner,
    holdCount,
    mode: 'exclusive',
    isThisClient: owner.startsWith(`${clientId}:`),
  }));
}
