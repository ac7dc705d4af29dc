import { groupOf, nameOf, type Named } from '../lock-name.js';
import { readHoldBase, readHoldKey, readWriteChannel } from '../redis/keys.js';
import type { ScriptExecutor } from '../redis/requests/script-executor.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply, HandOffReply, HeldReply, ReleaseReply } from '../redis/scripts/replies.js';
import * as scripts from '../redis/scripts/read-write-lock.js';
import { subscribersArg, type OwnSubscribers } from '../redis/scripts/script.js';
import type {
  Side,
  LockProtocol,
  RemainingHold,
  Renewal,
  RenewalItem,
  RenewalScript,
  SentRelease,
} from './lock-protocol.js';
import { isOwner } from './plain-lock-protocol.js';
import type { ProtocolPort } from './protocol-port.js';

const WRITE = ':write';
const isWriter = (field: string): boolean => field.endsWith(WRITE);

/** The common part of both sides of Redisson's RReadWriteLock: one hash, one channel and one release. */
abstract class SideProtocol implements LockProtocol {
  readonly name: string;
  readonly group: string | undefined;
  readonly key: string;
  readonly channel: string;
  readonly kind = 'read-write';
  readonly base: string;
  readonly reentrant = true;
  readonly family = 'read-write lock';
  abstract readonly handsOff: boolean;
  abstract readonly followsLocally: boolean;
  abstract readonly side: Side;
  abstract readonly concurrent: boolean;

  constructor(
    protected readonly port: ProtocolPort,
    named: Named,
  ) {
    this.name = nameOf(named);
    this.group = groupOf(named);
    this.key = port.keyPrefix + this.name;
    this.channel = readWriteChannel(this.key);
    this.base = readHoldBase(this.key);
  }

  get renewal(): RenewalScript {
    return this.port.renewals.readWrite;
  }

  abstract acquire(owner: string, leaseMs: number): ScriptRequest<AcquireReply>;
  abstract acquireNested(owner: string, holdCount: number, leaseMs: number): ScriptRequest<HeldReply>;
  abstract fieldOf(owner: string): string;
  abstract holdersAmong(fields: readonly string[]): string[];

  releasePartial(owner: string, remaining: readonly RemainingHold[], leaseMs: number): ScriptRequest<HeldReply> {
    const reads = remaining.filter(({ side }) => side === 'read');
    const writes = remaining.length - reads.length;
    const { executor, publish } = this.port;
    return executor.run(
      scripts.releasePartial,
      [this.key],
      [this.base, owner, writes, leaseMs, publish, this.channel, ...reads.map(({ leftMs }) => Math.max(0, leftMs))],
    );
  }

  release(owners: readonly string[]): ScriptRequest<ReleaseReply> {
    const { executor, publish } = this.port;
    return executor.run(scripts.release, [this.key], [this.base, publish, this.channel, ...owners]);
  }

  handOff(from: string, to: string, leaseMs: number, ours: OwnSubscribers): ScriptRequest<HandOffReply> {
    const { executor, publish } = this.port;
    return executor.run(
      scripts.handOff,
      [this.key],
      [this.base, from, to, leaseMs, publish, this.channel, subscribersArg(ours)],
    );
  }
}

export class ReadProtocol extends SideProtocol {
  readonly side = 'read';
  readonly concurrent = true;
  readonly line = 'read';
  readonly otherLine = 'write';
  /** Readers do not wait for one another, so a reader has nothing to hand over. */
  readonly handsOff = false;
  readonly followsLocally = false;

  acquire(owner: string, leaseMs: number): ScriptRequest<AcquireReply> {
    return this.port.executor.run(scripts.acquireRead, [this.key], [this.base, owner, leaseMs]);
  }

  acquireNested(owner: string, holdCount: number, leaseMs: number): ScriptRequest<HeldReply> {
    return this.port.executor.run(scripts.nestRead, [this.key], [this.base, owner, holdCount, leaseMs]);
  }

  releaseTogether(owner: string): SentRelease {
    return this.port.readerReleases.release(this, owner);
  }

  releaseReaders(owners: readonly string[]): ScriptRequest<ReleaseReply[]> {
    const { executor, publish } = this.port;
    return executor.run(scripts.releaseReaders, [this.key], [this.base, publish, this.channel, ...owners]);
  }

  get isReady(): boolean {
    return this.port.executor.routes.connectionFor(this.key, false)?.ready === true;
  }

  fieldOf(owner: string): string {
    return owner;
  }

  holdersAmong(fields: readonly string[]): string[] {
    // A hash without a `mode` field belongs to another kind of lock.
    return fields.includes('mode') ? fields.filter(isOwner) : [];
  }

  /** `forceUnlock()` of the read side keeps an owner that also has a write hold. */
  forceableAmong(fields: readonly string[]): string[] {
    return fields.some(isWriter) ? [] : this.holdersAmong(fields);
  }
}

export class WriteProtocol extends SideProtocol {
  readonly side = 'write';
  readonly concurrent = false;
  readonly line = 'write';
  readonly otherLine = 'read';
  readonly handsOff = true;
  readonly followsLocally = true;

  acquire(owner: string, leaseMs: number): ScriptRequest<AcquireReply> {
    // A reader that has just ended is released before.
    this.port.readerReleases.flush(this.key);
    return this.port.executor.run(scripts.acquireWrite, [this.key], [this.fieldOf(owner), leaseMs]);
  }

  acquireNested(owner: string, holdCount: number, leaseMs: number): ScriptRequest<HeldReply> {
    return this.port.executor.run(scripts.nestWrite, [this.key], [this.fieldOf(owner), holdCount, leaseMs]);
  }

  fieldOf(owner: string): string {
    return owner + WRITE;
  }

  holdersAmong(fields: readonly string[]): string[] {
    return fields.filter(isWriter).map((field) => field.slice(0, -WRITE.length));
  }
}

/** Renews the holds of one owner per lock. Only the holds that the watchdog watches are extended. */
export function readWriteRenewal(executor: ScriptExecutor, slotGroup: (key: string) => string | number): RenewalScript {
  return {
    groupOf: (item) => slotGroup(item.key),
    renew(items: readonly RenewalItem[]) {
      return executor.run(
        scripts.renew,
        items.map(({ key }) => key),
        items.flatMap(({ key, owner, leaseMs, holds = [] }) => {
          const reads = holds.filter(({ side }) => side === 'read');
          const write = holds.some(({ side, renewed }) => side === 'write' && renewed);
          return [
            readHoldBase(key),
            owner,
            leaseMs,
            Number(write),
            reads.length,
            ...reads.map(({ renewed }) => Number(renewed)),
          ];
        }),
      );
    },
    renewByKey: (item) => renewByKey(executor, item),
  };
}

/** Renews the keys of the read holds first: the hash lasts exactly as long as the longest of them. */
async function renewByKey(
  executor: ScriptExecutor,
  { key, owner, leaseMs, holds = [] }: RenewalItem,
): Promise<Renewal> {
  const reads = holds.filter(({ side }) => side === 'read');
  const writes = holds.filter(({ side }) => side === 'write');
  // A lease of 1 ms extends nothing: the script only returns the remaining lease.
  const leaseOf = ({ renewed }: { renewed: boolean }): number => (renewed ? leaseMs : 1);
  const requests = await Promise.all(
    reads.map((hold, i) => executor.run(scripts.renewKey, [readHoldKey(key, owner, i + 1)], ['', leaseOf(hold)]).done),
  );
  const failed = requests.find(({ error }) => error !== undefined);
  if (failed !== undefined) return { error: failed.error, reply: undefined, sentAt: failed.sentAt };
  const lefts = requests.flatMap(({ reply = 'lost' }) => (reply === 'lost' ? [] : [reply.remainingMs]));
  const longest = Math.max(0, ...lefts, ...writes.map(leaseOf));
  const sentAt = Math.min(...requests.map((request) => request.sentAt), Infinity);
  if (longest === 0) return { error: undefined, reply: ['lost'], sentAt };
  const { error, reply, sentAt: hashSentAt } = await executor.run(scripts.renewKey, [key], [owner, longest]).done;
  // Without a write hold the read holds last no longer than their own keys.
  const remainsLonger = reply !== undefined && reply !== 'lost' && writes.length === 0 && reply.remainingMs > longest;
  const left = remainsLonger ? { remainingMs: longest } : reply;
  return { error, reply: left === undefined ? undefined : [left], sentAt: Math.min(sentAt, hashSentAt) };
}
