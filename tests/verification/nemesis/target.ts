import type { Hold, Lock, LockClient, LockContext } from 'holdfast';
import type { Random } from '../../support/random.js';
import { isElsewhere, isExclusive, isRed, keyOf, kindOf, redisName, VALUES, valueName } from './kinds.js';

/** The lock of a section, and its name in histories. */
export interface Target {
  readonly name: string;
  readonly lock: Lock;
  readonly parts: readonly Part[];
  /** A call that waits for several locks may first have acquired each without a lease. */
  readonly joint: boolean;
}

interface Part {
  readonly name: string;
  readonly shared: boolean;
}

/** The members of a hold in a history. */
interface PartHold {
  readonly owner: string;
  readonly signal: AbortSignal;
  readonly token?: bigint;
  validFor(): number;
}

const partsOfHolds = new WeakMap<Hold, ReadonlyMap<string, PartHold>>();

/** One entry for each part of the hold. */
export function partHolds({ name: target, parts }: Target, hold: Hold): ReadonlyMap<string, PartHold> {
  // One for all its owners, and they may become more.
  if (isRed(target)) return new Map([[target, hold]]);
  const known = partsOfHolds.get(hold);
  if (known) return known;
  const made = new Map<string, PartHold>();
  const members = (hold as { members?: readonly Hold[] }).members ?? [];
  for (const { name } of parts) {
    // Each member has its own owner if one was acquired inside a hold that the call of the other found released.
    const { owner, token } = (members.find(({ lockName }) => lockName === name) ?? hold) as PartHold;
    made.set(name, {
      owner,
      ...(token !== undefined && { token }),
      get signal() {
        return hold.signal;
      },
      validFor: () => hold.validFor(),
    });
  }
  partsOfHolds.set(hold, made);
  return made;
}

/** Those of one process. */
export class Clients {
  readonly first: LockClient;
  /** Of database 1 of the same server, where there is one. */
  readonly elsewhere: LockClient | undefined;
  /** Of the servers that a RedLock is kept at. */
  readonly red: readonly LockClient[];

  constructor(clients: ReadonlyMap<string, LockClient>) {
    this.first = clients.get('client')!;
    this.elsewhere = clients.get(ELSEWHERE_CLIENT);
    this.red = [...clients].filter(([name]) => name !== ELSEWHERE_CLIENT).map(([, client]) => client);
  }

  of(name: string): LockClient {
    return isElsewhere(name) ? this.elsewhere! : this.first;
  }
}
export const ELSEWHERE_CLIENT = 'elsewhere';

/** Makes locks of the kinds that names stand for. */
export class Targets {
  constructor(
    private readonly clients: Clients,
    /** The members of multi-locks. */
    private readonly names: readonly string[],
    private readonly tokens: 'counter' | 'clock',
  ) {}

  /** `within`: the hold around the call, if it has the same name. */
  draw(name: string, random: Random, context?: LockContext, within?: Target): Target {
    const options = context ? { context } : {};
    const client = this.clients.of(name);
    const key = redisName(name);
    const one = (lock: Lock, shared = false): Target => ({ name, lock, parts: [{ name, shared }], joint: false });
    switch (kindOf(name)) {
      case 'fair':
        return one(client.getFairLock(key, options));
      case 'fenced':
        return one(client.getFencedLock(key, { ...options, tokens: this.tokens }));
      case 'spin':
        return one(client.getSpinLock(key, options));
      case 'nonreentrant':
        return one(client.getNonReentrantLock(key, options));
      case 'nonreentrantfair':
        return one(client.getNonReentrantFairLock(key, options));
      case 'red': {
        const locks = this.clients.red.map((each) => each.getLock(name, options));
        return { ...one(client.getRedLock(...locks, options)), joint: true };
      }
      case 'readwrite': {
        const reads = random.below(3) > 0;
        const lock = client.getReadWriteLock(key, options);
        return one(reads ? lock.readLock() : lock.writeLock(), reads);
      }
      case 'group': {
        const from = within?.parts.map((part) => part.name.slice(name.length + 1)) ?? VALUES;
        const values = someOf(from, random);
        const parts = values.map((value) => ({ name: valueName(name, value), shared: false }));
        return { name, lock: client.getMultiLock(key, values, options), parts, joint: false };
      }
      case 'multi': {
        const members = within?.parts.map((part) => part.name) ?? this.#members(random);
        const targets = members.map((member) => this.draw(member, random, context));
        const lock = client.getMultiLock(...targets.map((target) => target.lock), options);
        return { name, lock, parts: targets.flatMap(({ parts }) => parts), joint: true };
      }
      default:
        return one(client.getLock(key, options));
    }
  }

  #members(random: Random): string[] {
    const locks = this.names.filter((name) => isExclusive(name) && !isElsewhere(name));
    const first = random.pick(locks);
    const others = locks.filter((name) => name !== first);
    return [first, ...(others.length > 0 ? [random.pick(others)] : [])];
  }
}

/** At least one, in the order given. */
function someOf(values: readonly string[], random: Random): string[] {
  const one = random.pick(values);
  return values.filter((value) => value === one || random.below(2) === 0);
}

/** Whether both are about one key. */
export const meets = ({ parts }: Target, name: string): boolean => parts.some((part) => keyOf(part.name) === name);
