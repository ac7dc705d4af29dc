import type { Hold, Lock, LockClient, LockContext } from 'holdfast';
import type { Random } from '../../support/random.js';
import { isExclusive, isRed, keyOf, kindOf, VALUES, valueName } from './kinds.js';

/** A lock that a section takes, and what histories call it. */
export interface Target {
  readonly name: string;
  readonly lock: Lock;
  readonly parts: readonly Part[];
  /** What waits for several may have taken each without a lease first. */
  readonly joint: boolean;
}

interface Part {
  readonly name: string;
  readonly shared: boolean;
}

/** What the members of a hold are to a history. */
interface PartHold {
  readonly owner: string;
  readonly signal: AbortSignal;
  readonly token?: bigint;
  validFor(): number;
}

const partsOfHolds = new WeakMap<Hold, ReadonlyMap<string, PartHold>>();

/** One for each part of what was taken. */
export function partHolds({ name: target, parts }: Target, hold: Hold): ReadonlyMap<string, PartHold> {
  // One for all its owners, and they may become more.
  if (isRed(target)) return new Map([[target, hold]]);
  const known = partsOfHolds.get(hold);
  if (known) return known;
  const made = new Map<string, PartHold>();
  const members = (hold as { members?: readonly Hold[] }).members ?? [];
  for (const { name } of parts) {
    // Each member has its own owner, where one was taken inside a hold that the other's call found given back.
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

/** Makes locks of the kinds that names stand for. */
export class Targets {
  constructor(
    private readonly client: LockClient,
    /** Of the servers that a RedLock is kept at. */
    private readonly clients: readonly LockClient[],
    private readonly names: readonly string[],
    private readonly tokens: 'counter' | 'clock',
  ) {}

  /** `within`: what the call is made inside of, if it is the same name. */
  draw(name: string, random: Random, context?: LockContext, within?: Target): Target {
    const options = context ? { context } : {};
    const one = (lock: Lock, shared = false): Target => ({ name, lock, parts: [{ name, shared }], joint: false });
    switch (kindOf(name)) {
      case 'fair':
        return one(this.client.getFairLock(name, options));
      case 'fenced':
        return one(this.client.getFencedLock(name, { ...options, tokens: this.tokens }));
      case 'spin':
        return one(this.client.getSpinLock(name, options));
      case 'nonreentrant':
        return one(this.client.getNonReentrantLock(name, options));
      case 'nonreentrantfair':
        return one(this.client.getNonReentrantFairLock(name, options));
      case 'red': {
        const locks = this.clients.map((client) => client.getLock(name, options));
        return { ...one(this.client.getRedLock(...locks, options)), joint: true };
      }
      case 'readwrite': {
        const reads = random.below(3) > 0;
        const lock = this.client.getReadWriteLock(name, options);
        return one(reads ? lock.readLock() : lock.writeLock(), reads);
      }
      case 'group': {
        const from = within?.parts.map((part) => part.name.slice(name.length + 1)) ?? VALUES;
        const values = someOf(from, random);
        const parts = values.map((value) => ({ name: valueName(name, value), shared: false }));
        return { name, lock: this.client.getMultiLock(name, values, options), parts, joint: false };
      }
      case 'multi': {
        const members = within?.parts.map((part) => part.name) ?? this.#members(random);
        const targets = members.map((member) => this.draw(member, random, context));
        const lock = this.client.getMultiLock(...targets.map((target) => target.lock), options);
        return { name, lock, parts: targets.flatMap(({ parts }) => parts), joint: true };
      }
      default:
        return one(this.client.getLock(name, options));
    }
  }

  #members(random: Random): string[] {
    const locks = this.names.filter(isExclusive);
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
