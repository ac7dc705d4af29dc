import type { LockedValues } from '../ownership/lock-context.js';
import type { LockKind } from '../events.js';
import type { LockError } from '../errors.js';
import type { Doubt } from '../redis/requests/doubt.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { RefreshReply } from '../redis/scripts/fair-lock.js';
import type { AcquireReply, HandOffReply, HeldReply, ReleaseReply, RenewalReply } from '../redis/scripts/replies.js';
import type { OwnSubscribers } from '../redis/scripts/script.js';

/** One lock of a renewal, with the arguments of the renewal script of its kind. */
export interface RenewalItem {
  readonly key: string;
  readonly owner: string;
  readonly leaseMs: number;
  /**
   * For a kind whose holds differ: all open holds of the owner, oldest first. `renewed`: the renewal extends this hold.
   */
  readonly holds?: readonly { readonly side: Side; readonly renewed: boolean; readonly protocol: LockProtocol }[];
}

/** A side of a read-write lock; `undefined` for every other kind. */
export type Side = 'read' | 'write' | undefined;

/** A hold that an owner keeps when it releases another one. */
export interface RemainingHold {
  readonly side: Side;
  readonly protocol: LockProtocol;
  /** Rest of the hold's own lease, in milliseconds. It is 0 or less if that lease has ended. */
  readonly leftMs: number;
}

/** The outcome of a renewal. */
export type Renewal = Pick<ScriptRequest<RenewalReply[]>, 'error' | 'reply' | 'sentAt'>;

/**
 * A script that renews several locks. Kinds that can be renewed together share one. The reply has the remaining lease
 * of each item in milliseconds, or 0 if its owner no longer holds it.
 */
export interface RenewalScript {
  /** Items of one group can be renewed by one script, because their keys are on one server. */
  groupOf(item: RenewalItem): string | number;
  renew(items: readonly RenewalItem[]): ScriptRequest<RenewalReply[]>;
  /**
   * Renews the keys of an item one by one. While a slot moves, its keys may be on two nodes, and no script can then name
   * both. Absent for a kind with one key per lock.
   */
  renewByKey?(item: RenewalItem): Promise<Renewal>;
}

/**
 * How a kind stores its owners in Redis. A call re-enters a hold only if both are of one family, because the scripts of
 * one family do not find the owners of another.
 */
type LockFamily = 'hash of one owner' | 'read-write lock' | 'group multi-lock';

/** The queue in Redis of a kind whose waiters have a place there, stored under their owner ids. */
export interface WaitQueue {
  /** The channel of this owner alone. A message there says that the owner is next. */
  channelOf(owner: string): string;
  /** Keeps the places of these owners. They are in the order in which they joined the queue. */
  refresh(owners: readonly string[]): ScriptRequest<RefreshReply>;
}

/** A pending release, which may share a request with others. */
export interface SentRelease {
  readonly error: LockError | undefined;
  readonly reply: ReleaseReply | undefined;
  readonly doubt: Doubt | undefined;
  /** The request has been written, or no later request of this client for the lock is written before it. */
  readonly isWritten: boolean;
  /** Resolves when the request has left this process; with `false` if it does not. `true`: it has left. */
  whenFlushed(): true | Promise<boolean>;
  /** Resolves with the release itself, never rejects. */
  readonly done: Promise<SentRelease>;
  /** As `done`, without a promise. */
  onDone(fn: () => void): void;
}

/** The requests of one kind of lock for one name. The rest of the client treats all kinds alike. */
export interface LockProtocol {
  /** The name that the caller passed, without the key prefix. */
  readonly name: string;
  /** The group of the name, if `lockName` made it. It labels events, messages and metrics, and has no other effect. */
  readonly group: string | undefined;
  /** The key that is locked. Two protocols with the same key compete for it. */
  readonly key: string;
  /** The kind, in events, statistics and diagnostics channels. It also tells the members of a multi-lock apart. */
  readonly kind: LockKind;
  readonly channel: string;
  readonly reentrant: boolean;
  /** Whether the release of a last hold may hand the lock directly to a waiter of this client. */
  readonly handsOff: boolean;
  /**
   * Whether sections of this client may follow one another under the same owner in Redis. Not if each hold has a token of
   * its own, or a place in a queue, nor for readers: they do not wait for one another.
   */
  readonly followsLocally: boolean;
  readonly renewal: RenewalScript;
  readonly family: LockFamily;
  readonly side: Side;
  /** Whether several owners can hold the lock at the same time, as readers can. A local holder then keeps no waiter out. */
  readonly concurrent: boolean;
  /**
   * Names the line in which calls of this client wait, if several lines share the channel of the lock. Calls that ask for
   * the same wait in the same line. Absent: the lock has one line.
   */
  readonly line?: string | undefined;
  /** The other line whose waiters the same message wakes. */
  readonly otherLine?: string;
  /** The locked values of a group; absent for a kind that locks its whole key. */
  readonly lockedValues?: LockedValues;
  /** The queue in Redis; absent for a kind whose waiters are known only to their own client. */
  readonly queue?: WaitQueue;

  /**
   * Acquires the lock for an owner that has no hold. `waits`: a busy lock gives the owner a place in the queue, if
   * there is one.
   */
  acquire(owner: string, leaseMs: number, waits: boolean): ScriptRequest<AcquireReply>;
  /**
   * Adds a hold to an owner that has the lock. `holdCount`: holds of this side after the call. `open`: the protocols of
   * the owner's other open holds. `token`: the newest fencing token of these holds.
   */
  acquireNested(
    owner: string,
    holdCount: number,
    leaseMs: number,
    open: readonly LockProtocol[],
    token?: bigint,
  ): ScriptRequest<HeldReply>;
  /** Releases one of several holds of an owner. `leaseMs`: the longest rest of a lease among the remaining holds. */
  releasePartial(owner: string, remaining: readonly RemainingHold[], leaseMs: number): ScriptRequest<HeldReply>;
  /**
   * Frees the lock if one of the owners has it, and removes the owners from the queue, if there is one. `last`: the
   * protocol of the released hold. If its owner no longer holds all of its parts, the reply is `partly` or `gone`.
   */
  release(owners: readonly string[], last?: LockProtocol): ScriptRequest<ReleaseReply>;
  /** As `release()` of one owner, in one request with other owners. Absent for a kind without such a request. */
  releaseTogether?(owner: string): SentRelease;
  /**
   * Hands the lock to another owner of this client. `ours`: number of subscribers of the channel that belong to this
   * client. If the channel has more subscribers, the script frees the lock for them instead.
   */
  handOff(from: string, to: string, leaseMs: number, ours: OwnSubscribers): ScriptRequest<HandOffReply>;
  /**
   * Computes the pause before the next try, in milliseconds, from the pause before it (0 for the first) and the number
   * of failed tries. Absent for a kind whose waiters are woken through a channel.
   */
  readonly polls?: (before: number, failures: number) => number;
  /** The hash field that stores the holds of this owner. */
  fieldOf(owner: string): string;
  /** The owners that hold the lock, according to the fields of its hash. */
  holdersAmong(fields: readonly string[]): string[];
  /** The owners among them that a force unlock frees. Absent: all of them. */
  forceableAmong?(fields: readonly string[]): string[];
}

/** Releases owners that no caller still has: one owner together with others, if the kind can do so. */
export const sendRelease = (protocol: LockProtocol, owners: readonly string[], last?: LockProtocol): SentRelease =>
  owners.length === 1 && protocol.releaseTogether !== undefined
    ? protocol.releaseTogether(owners[0] as string)
    : protocol.release(owners, last);
