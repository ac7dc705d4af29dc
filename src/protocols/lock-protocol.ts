import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { RefreshReply } from '../redis/scripts/fair-lock.js';
import type { AcquireReply, HandOffReply, HeldReply, ReleaseReply } from '../redis/scripts/replies.js';

/** One lock to be renewed, as its kind's renewal script wants it. */
export interface RenewalItem {
  readonly key: string;
  readonly owner: string;
  readonly leaseMs: number;
  /** Of a lock whose holds differ: all open holds of the owner, oldest first, and which of them the renewal is for. */
  readonly holds?: readonly { readonly half: Half; readonly renewed: boolean; readonly protocol: LockProtocol }[];
}

/** Which half of a read-write lock; other locks have no halves. */
export type Half = 'read' | 'write' | undefined;

/** What an owner keeps when it gives one of its holds back. */
export interface RemainingHold {
  readonly half: Half;
  readonly protocol: LockProtocol;
  /** ms of its own lease; may be over. */
  readonly leftMs: number;
}

/** What a renewal has come to. */
export type Renewal = Pick<ScriptRequest<number[]>, 'error' | 'reply' | 'sentAt'>;

/** Kinds whose renewals fit into one script share one of these. The reply has the ms left of each item, 0: not held. */
export interface RenewalScript {
  /** Items of one group may go in one script: their keys are on one server. */
  groupOf(item: RenewalItem): string | number;
  renew(items: readonly RenewalItem[]): ScriptRequest<number[]>;
  /** Only for a kind with several keys: renews them one by one, where a moving slot has them at two nodes. */
  renewByKey?(item: RenewalItem): Promise<Renewal>;
}

/**
 * How a kind keeps its owners in Redis. A hold is inside another hold of its key only within one family: the scripts of
 * one family do not find the owners of another.
 */
type LockFamily = 'hash of one owner' | 'read-write lock' | 'group multi-lock';

/** Which parts of a key are locked. Locks of one key with the same parts stand in one line. */
export interface LockParts extends Iterable<string> {
  /** Short, and the same for the same parts. */
  readonly line: string;
  covers(other: LockParts): boolean;
  overlaps(other: LockParts): boolean;
}

/** Of a kind whose waiters have their places in a queue in Redis, each under its owner. */
export interface WaitQueue {
  /** Where this owner, and no other, is told that it is its turn. */
  channelOf(owner: string): string;
  /** Keeps the places of these owners, which came in this order. */
  refresh(owners: readonly string[]): ScriptRequest<RefreshReply>;
}

/** What a kind of lock says to Redis about one name. Everything above it is the same for all kinds. */
export interface LockProtocol {
  /** As the caller gave it. */
  readonly name: string;
  /** What is locked: two protocols with the same key contend. */
  readonly key: string;
  readonly channel: string;
  readonly reentrant: boolean;
  /** Whether the release of a last hold of this kind may give the lock straight to a local waiter. */
  readonly handsOff: boolean;
  readonly renewal: RenewalScript;
  readonly family: LockFamily;
  readonly half: Half;
  /** Its holds do not exclude one another, as those of readers: a holder of this client keeps no waiter out. */
  readonly concurrent: boolean;
  /**
   * Names the line in which the calls of this client wait for the lock, if several lines share its channel: one for all
   * that ask for the same. Absent: the lock has one line.
   */
  readonly line?: string | undefined;
  /** The other line whose waiters the same message wakes. */
  readonly otherLine?: string;
  /** Only for a kind that locks parts of what its key stands for. */
  readonly parts?: LockParts;
  /** Absent: waiters are known to their own client only. */
  readonly queue?: WaitQueue;

  /** `waits`: the owner is to get a place in the queue, if the kind has one. */
  acquire(owner: string, leaseMs: number, waits: boolean): ScriptRequest<AcquireReply>;
  /**
   * `holdCount`: of this half, after the call; `open`: what the owner's holds so far were asked for with; `token`: the
   * newest that any of them was given.
   */
  acquireNested(
    owner: string,
    holdCount: number,
    leaseMs: number,
    open: readonly LockProtocol[],
    token?: bigint,
  ): ScriptRequest<HeldReply>;
  /** `leaseMs`: the longest that is left to the remaining holds. */
  releasePartial(owner: string, remaining: readonly RemainingHold[], leaseMs: number): ScriptRequest<HeldReply>;
  /**
   * Frees the lock if any of the owners has it; where there is a queue they lose their places in it, too. `last`: what the hold was asked for with that must
   * still be there.
   */
  release(owners: readonly string[], last?: LockProtocol): ScriptRequest<ReleaseReply>;
  /** `ours`: subscribers of the channel that are this client; with more the lock is freed instead. -1: do not ask. */
  handOff(from: string, to: string, leaseMs: number, ours: number): ScriptRequest<HandOffReply>;
  /**
   * Only for a kind that has no channel: ms until the next try, from the pause before it (0: none yet) and the number
   * of tries that failed.
   */
  readonly polls?: (before: number, failures: number) => number;
  /** Of a kind that draws fencing tokens: the one in the answer to an acquire, nested acquire or hand-off. */
  tokenIn?(reply: AcquireReply | HeldReply | HandOffReply): bigint | undefined;
  /** The field that stands for a hold of this owner. */
  fieldOf(owner: string): string;
  /** The owners that hold it, by the fields of the hash. */
  holdersAmong(fields: readonly string[]): string[];
  /** Those of them that a force unlock frees; absent: all. */
  forceableAmong?(fields: readonly string[]): string[];
}
