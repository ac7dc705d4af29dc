import { groupOf, nameOf, type Named } from '../lock-name.js';
import type { LockKind } from '../events.js';
import type { LockProtocol, RemainingHold, RenewalItem, RenewalScript } from './lock-protocol.js';
import { NO_ROLL, type ProtocolPort } from './protocol-port.js';
import { lockChannel } from '../redis/keys.js';
import type { ScriptExecutor } from '../redis/requests/script-executor.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply, HandOffReply, HeldReply, ReleaseReply } from '../redis/scripts/replies.js';
import * as scripts from '../redis/scripts/lock.js';
import { subscribersArg, type OwnSubscribers } from '../redis/scripts/script.js';

const OWNER = /[\da-f]{8}(?:-[\da-f]{4}){4}[\da-f]{8}:-?\d+/i;
const ONE_OWNER = new RegExp(`^${OWNER.source}$`, 'i');

/**
 * Whether a hash field is an owner: `<client id>:<thread id>`. Client ids are UUIDs, those of Redisson as well. A thread
 * id of a JVM is any `long`, so it may be negative. The fields of writers and of group values look different.
 */
export const isOwner = (field: string): boolean => ONE_OWNER.test(field);

/** Whether a hash with these fields is no lock. Every kind of lock names an owner in some field. */
export const isForeign = (fields: readonly string[]): boolean =>
  fields.length > 0 && !fields.some((field) => OWNER.test(field));

/** The requests of Redisson's RLock: a hash with one owner and its hold count, and one channel. */
export class PlainLockProtocol implements LockProtocol {
  readonly name: string;
  readonly group: string | undefined;
  readonly key: string;
  readonly channel: string;

  constructor(
    protected readonly port: ProtocolPort,
    named: Named,
  ) {
    this.name = nameOf(named);
    this.group = groupOf(named);
    this.key = port.keyPrefix + this.name;
    this.channel = lockChannel(this.key);
  }

  // What is the same for all locks of a kind is a getter: a client may have many locks, and a property is stored in each.

  get kind(): LockKind {
    return 'lock';
  }

  get reentrant(): boolean {
    return true;
  }

  get handsOff(): boolean {
    return true;
  }

  get followsLocally(): boolean {
    return true;
  }

  get family(): 'hash of one owner' {
    return 'hash of one owner';
  }

  get side(): undefined {
    return undefined;
  }

  get concurrent(): boolean {
    return false;
  }

  get line(): string | undefined {
    return undefined;
  }

  get renewal(): RenewalScript {
    return this.port.renewals.plain;
  }

  /** Only a kind with a queue in Redis reads `_waits`. */
  acquire(owner: string, leaseMs: number, _waits: boolean): ScriptRequest<AcquireReply> {
    return this.port.executor.run(scripts.acquire, [this.key], [owner, leaseMs, '', '', 0, 0]);
  }

  acquireNested(owner: string, holdCount: number, leaseMs: number): ScriptRequest<HeldReply> {
    return this.port.executor.run(scripts.acquireNested, [this.key], [owner, holdCount, leaseMs]);
  }

  releasePartial(owner: string, remaining: readonly RemainingHold[], leaseMs: number): ScriptRequest<HeldReply> {
    return this.port.executor.run(scripts.releasePartial, [this.key], [owner, remaining.length, leaseMs]);
  }

  release(owners: readonly string[]): ScriptRequest<ReleaseReply> {
    const { executor, publish, rollOf } = this.port;
    // Nearly every release has one owner. A literal has room for exactly its elements; a spread makes V8 reserve more.
    const [owner] = owners;
    const [waiters, own] = rollOf?.(this.key) ?? NO_ROLL;
    return owners.length === 1
      ? executor.run(scripts.release, [this.key], [publish, this.channel, -1, waiters, own, 1, '', 0, owner as string])
      : executor.run(scripts.release, [this.key], [publish, this.channel, -1, waiters, own, 1, '', 0, ...owners]);
  }

  fieldOf(owner: string): string {
    return owner;
  }

  holdersAmong(fields: readonly string[]): string[] {
    // Only the hash of a read-write lock has a field `mode`.
    return fields.includes('mode') ? [] : fields.filter(isOwner);
  }

  handOff(from: string, to: string, leaseMs: number, ours: OwnSubscribers): ScriptRequest<HandOffReply> {
    const { executor, publish, rollOf } = this.port;
    const [waiters, own] = rollOf?.(this.key) ?? NO_ROLL;
    return executor.run(
      scripts.handOff,
      [this.key],
      [from, to, leaseMs, publish, this.channel, subscribersArg(ours), waiters, own, 1, '', 0],
    );
  }
}

/** Renews the locks that are a hash with one owner field. */
export function plainRenewal(executor: ScriptExecutor, slotGroup: (key: string) => string | number): RenewalScript {
  return {
    groupOf: (item) => slotGroup(item.key),
    renew(items: readonly RenewalItem[]) {
      return executor.run(
        scripts.renew,
        items.map((item) => item.key),
        items.flatMap((item) => [item.owner, item.leaseMs]),
      );
    },
  };
}
