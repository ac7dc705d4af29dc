/*
 * The replies of the lock scripts in words. The bindings decode the numbers of the scripts, and the code above the
 * bindings reads `kind`. The frequent replies are shared objects, so decoding them allocates nothing.
 */
import { replyInt, replyInts } from './script.js';

/** The request acquired the lock, or the latch is open. */
export interface Granted {
  readonly kind: 'granted';
  /** The fencing token; `undefined` for a kind of lock without tokens. */
  readonly token: bigint | undefined;
}

/** The request acquired permits. */
interface PermitsGranted {
  readonly kind: 'permits';
  /** The part of the reply that concerns the next waiter; `undefined` while permits are free. */
  readonly next: Busy | undefined;
}

/** The request acquired nothing. */
export interface Busy {
  readonly kind: 'busy';
  /** Time, in ms, until a lease ends, so that a try may succeed; `undefined`: unknown. */
  readonly retryAfterMs: number | undefined;
  /** When the latch was last opened, in µs of the server clock; `undefined`: unknown, or no latch. */
  readonly openedAtUs?: number | undefined;
  /** The semaphore does not exist. */
  readonly isMissing?: true;
  /** The request has asked Redis to park its client. */
  readonly parked?: Parked;
}

/** What a client learns that is parked in the roll of a lock. */
interface Parked {
  /** A holder may belong to a client that does not read the roll, such as a JVM. */
  readonly isForeign: boolean;
  /** Place in the roll, from 0; `undefined`: Redis refused the roll. */
  readonly rank: number | undefined;
}

/** An owner that has the lock opened or released a hold. */
interface Held {
  readonly kind: 'held';
  /** The fencing token of a new hold; `undefined` for a kind of lock without tokens. */
  readonly token: bigint | undefined;
}

/** The lock has a new owner. */
export interface Handed {
  readonly kind: 'handed';
  /** The fencing token of the new owner; `undefined` for a kind of lock without tokens. */
  readonly token: bigint | undefined;
}

/** The owner of the request does not have the lock. */
interface Gone {
  readonly kind: 'gone';
}

export type AcquireReply = Granted | PermitsGranted | Busy;
export type HeldReply = Held | Gone;
/** `partly`: a part of the hold was lost before, and the rest is released. */
export type ReleaseReply = 'freed' | 'partly' | 'gone';
/** `freed`: other clients wait, so the script freed the lock for them. */
export type HandOffReply = Handed | { readonly kind: 'freed' } | Gone;
/** `lost`: the owner no longer holds the lock. */
export type RenewalReply = 'lost' | { readonly remainingMs: number };

const GRANTED: Granted = Object.freeze({ kind: 'granted', token: undefined });
const BUSY: Busy = Object.freeze({ kind: 'busy', retryAfterMs: undefined });
const MISSING: Busy = Object.freeze({ kind: 'busy', retryAfterMs: undefined, isMissing: true });
const PERMITS: PermitsGranted = Object.freeze({ kind: 'permits', next: undefined });
const LAST_PERMITS: PermitsGranted = Object.freeze({ kind: 'permits', next: BUSY });
const HELD: Held = Object.freeze({ kind: 'held', token: undefined });
const HANDED: Handed = Object.freeze({ kind: 'handed', token: undefined });
const FREED: HandOffReply = Object.freeze({ kind: 'freed' });
const GONE: Gone = Object.freeze({ kind: 'gone' });

/** Whether replicas may have to confirm the reply. */
export const isGrant = ({ kind }: AcquireReply | HandOffReply): boolean =>
  kind === 'granted' || kind === 'permits' || kind === 'handed';

/** A negative number: the time is unknown, or the key has no expiry. */
const busyFor = (ms: number): Busy => (ms < 0 ? BUSY : { kind: 'busy', retryAfterMs: ms });

/** A token is text in the reply, because it may exceed the safe integers. Every other value is an integer. */
const tokenIn = (raw: unknown): bigint | undefined => (typeof raw === 'string' && raw !== '' ? BigInt(raw) : undefined);

/** A number: the lease that is left. An array: the client is parked, too. */
function replyBusy(raw: unknown): Busy {
  if (!Array.isArray(raw)) return busyFor(replyInt(raw));
  const [left = -1, foreign, rank = -1] = replyInts(raw);
  return { ...busyFor(left), parked: { isForeign: foreign === 1, rank: rank < 0 ? undefined : rank } };
}

export function replyAcquire(raw: unknown): AcquireReply {
  return raw === null ? GRANTED : replyBusy(raw);
}

export function replyFencedAcquire(raw: unknown): AcquireReply {
  const token = tokenIn(raw);
  return token === undefined ? replyBusy(raw) : { kind: 'granted', token };
}

/** -1: too few permits are free, and it is unknown when more will be. -2: the semaphore does not exist. */
export function replyPermits(raw: unknown): AcquireReply {
  const free = replyInt(raw);
  return free > 0 ? PERMITS : free === 0 ? LAST_PERMITS : free === -2 ? MISSING : BUSY;
}

export function replyExpirablePermits(raw: unknown): AcquireReply {
  const [granted = 0, free = 0, freeIn = -1] = replyInts(raw);
  if (granted === -1 && freeIn < 0) return MISSING;
  if (granted !== 1) return busyFor(freeIn);
  return free > 0 ? PERMITS : { kind: 'permits', next: busyFor(freeIn) };
}

export function replyLatch(raw: unknown): AcquireReply {
  const [count, openedAt] = raw as readonly unknown[];
  if (count === null || replyInt(count) <= 0) return GRANTED;
  return { kind: 'busy', retryAfterMs: undefined, openedAtUs: openedAt === null ? undefined : replyInt(openedAt) };
}

export function replyHeld(raw: unknown): HeldReply {
  return replyInt(raw) === 1 ? HELD : GONE;
}

export function replyFencedHeld(raw: unknown): HeldReply {
  const token = tokenIn(raw);
  if (token !== undefined) return { kind: 'held', token };
  replyInt(raw);
  return GONE;
}

/** The reply of a script that freed a lock and could not read its roll, so that it woke nobody. */
export const ROLL_UNREADABLE = 7;
/** The numbers with which a release and a hand-over say that they freed a lock. */
const FREED_BY_RELEASE: readonly number[] = [1, 5, 6, ROLL_UNREADABLE];
const FREED_BY_HAND_OFF: readonly number[] = [2, 5, 6, ROLL_UNREADABLE];

export function replyRelease(raw: unknown): ReleaseReply {
  return FREED_BY_RELEASE.includes(replyInt(raw)) ? 'freed' : 'gone';
}

export function replyReleases(raw: unknown): ReleaseReply[] {
  return replyInts(raw).map((n) => (n === 1 ? 'freed' : 'gone'));
}

export function replyGroupRelease(raw: unknown): ReleaseReply {
  const n = replyInt(raw);
  return n === 1 ? 'freed' : n === 2 ? 'partly' : 'gone';
}

export function replyHandOff(raw: unknown): HandOffReply {
  const n = replyInt(raw);
  return n === 1 ? HANDED : FREED_BY_HAND_OFF.includes(n) ? FREED : GONE;
}

export function replyFencedHandOff(raw: unknown): HandOffReply {
  const token = tokenIn(raw);
  if (token !== undefined) return { kind: 'handed', token };
  return FREED_BY_HAND_OFF.includes(replyInt(raw)) ? FREED : GONE;
}

/** A release in place of a hand-over. */
export function replyFreed(raw: unknown): HandOffReply {
  return replyRelease(raw) === 'freed' ? FREED : GONE;
}

const renewed = (ms: number): RenewalReply => (ms > 0 ? { remainingMs: ms } : 'lost');

export function replyRenewal(raw: unknown): RenewalReply {
  return renewed(replyInt(raw));
}

export function replyRenewals(raw: unknown): RenewalReply[] {
  return replyInts(raw).map(renewed);
}

/** Whether the script did what the request wanted. */
export const replyDone = (raw: unknown): boolean => replyInt(raw) === 1;

/** Whether the owner of a forced unlock had the lock. */
export const replyForced = (raw: unknown): boolean => replyRelease(raw) === 'freed';

/** `refused`: Redis refuses the roll. `elsewhere`: the slot migrates, and the roll may be at the other node. */
export type WakeReply = 'woken' | 'refused' | 'elsewhere';

export function replyWake(raw: unknown): WakeReply {
  const n = replyInt(raw);
  return n === -1 ? 'refused' : n === -2 ? 'elsewhere' : 'woken';
}

/** Payload of the message that a script has published when it freed the lock. */
export const freedPayload = (reply: ReleaseReply | HandOffReply): string | undefined =>
  reply === 'freed' || reply === 'partly' || (typeof reply === 'object' && reply.kind === 'freed') ? '0' : undefined;
