import type { ScriptRequest } from '../redis/script-executor.js';
import type { AcquireReply, HandOffReply, HeldReply, ReleaseReply } from '../redis/scripts/lock.js';

/** One lock to be renewed, as its kind's renewal script wants it. */
export interface RenewalItem {
  readonly key: string;
  readonly owner: string;
  readonly leaseMs: number;
}

/** Kinds whose renewals fit into one script share one of these. The reply has the ms left of each item, 0: not held. */
export interface RenewalScript {
  /** Items of one group may go in one script: their keys are on one server. */
  groupOf(item: RenewalItem): string | number;
  renew(items: readonly RenewalItem[]): ScriptRequest<number[]>;
}

/** What a kind of lock says to Redis about one name. Everything above it is the same for all kinds. */
export interface LockProtocol {
  /** As the caller gave it. */
  readonly name: string;
  /** What is locked: two protocols with the same key contend. */
  readonly key: string;
  readonly channel: string;
  readonly reentrant: boolean;
  /** Whether a release may give the lock straight to a local waiter. */
  readonly handsOff: boolean;
  readonly renewal: RenewalScript;

  acquire(owner: string, leaseMs: number): ScriptRequest<AcquireReply>;
  acquireNested(owner: string, holdCount: number, leaseMs: number): ScriptRequest<HeldReply>;
  releasePartial(owner: string, holdCount: number, leaseMs: number): ScriptRequest<HeldReply>;
  /** Frees the lock if any of the owners has it. */
  release(owners: readonly string[]): ScriptRequest<ReleaseReply>;
  /** `ours`: subscribers of the channel that are this client; with more the lock is freed instead. -1: do not ask. */
  handOff(from: string, to: string, leaseMs: number, ours: number): ScriptRequest<HandOffReply>;
}
