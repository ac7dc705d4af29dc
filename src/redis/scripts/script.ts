import type { TimeLeft } from '../../lease-time.js';
import { shortened } from '../../visible.js';

/** A script of `lua`. `generated.ts` has one for each file, from the header of the file. */
interface ScriptFile {
  /** `lock/acquire` is lua/lock/acquire.lua. */
  readonly name: string;
  readonly source: string;
  /** The SHA-1 digest of the source, by which Redis knows the script. */
  readonly sha: string;
  /**
   * Where the client adds the not-after argument: the server time after which the script changes nothing. It comes first
   * where the number of arguments varies. `undefined` for a script that is never too late.
   */
  readonly notAfter: 'first' | 'last' | undefined;
  /**
   * First and last line of each range in which the script may have written before Redis refuses a command. Elsewhere there
   * is nothing to undo.
   */
  readonly writtenAt: readonly (readonly [from: number, to: number])[];
}

/** A script, and the types of its keys and arguments without the not-after. */
export interface Script<Keys extends readonly string[], Args extends readonly (string | number)[]> extends ScriptFile {
  /** Never set. */
  readonly types?: [Keys, Args];
}

/** A script or a plain read: how to send it, and how to decode its reply. */
export interface Operation<Keys extends readonly string[], Args extends readonly (string | number)[], Reply> {
  /** Name of the script, such as `lock/acquire` for lua/lock/acquire.lua, or of the command of a plain read. */
  readonly name: string;
  /** `undefined` for a plain read. */
  readonly script: ScriptFile | undefined;
  /** That of the script. Absent for a plain read. */
  readonly notAfter?: ScriptFile['notAfter'];
  reply(raw: unknown): Reply;
  /** Whether the reply is a grant, which replicas may have to confirm. Absent if no reply is a grant. */
  readonly isGrant?: ((reply: Reply) => boolean) | undefined;
  /** The payload that the script has published if it sends this reply. Absent if no waiter depends on the message. */
  readonly publishedPayload?: ((reply: Reply) => string | undefined) | undefined;
  /**
   * The roll whose clients the script wakes when it frees the lock. `undefined`: it leaves the roll alone. Absent for a
   * script that knows no roll.
   */
  rollOf?(args: Args): Roll | undefined;
  /** What to do instead of another attempt if a migrating slot keeps the keys on two nodes. */
  ifSplit?(keys: Keys, args: Args): IfSplit<Reply>;
  /** Never set. Makes the type parameters part of the type. */
  readonly types?: [Keys, Args];
}

/** The list, in Redis, of the clients that are parked until a lock is free. */
export interface Roll {
  /** Its key. */
  readonly waiters: string;
  /** Prefix of the channel of each client. */
  readonly own: string;
  /** Number of clients to wake. */
  readonly most: number;
}

export interface InsteadOf<Reply> {
  readonly operation: Operation<readonly string[], readonly (string | number)[], Reply>;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/**
 * The operation to send instead; or `'fail'`: the request fails at once; or `'retry'`: the request tries again after a
 * pause.
 */
type IfSplit<Reply> = InsteadOf<Reply> | 'fail' | 'retry';

/** What a binding adds to a script. */
type Decoding<Keys extends readonly string[], Args extends readonly (string | number)[], Reply> = Pick<
  Operation<Keys, Args, Reply>,
  'reply' | 'isGrant' | 'publishedPayload' | 'rollOf' | 'ifSplit'
>;

export function bind<Keys extends readonly string[], Args extends readonly (string | number)[], Reply>(
  script: Script<Keys, Args>,
  decoding: Decoding<Keys, Args, Reply>,
): Operation<Keys, Args, Reply> {
  return { name: script.name, script, notAfter: script.notAfter, ...decoding };
}

export function defineRead<Args extends readonly string[], Reply, Keys extends readonly string[] = readonly [string]>(
  command: string,
  reply: (raw: unknown) => Reply,
): Operation<Keys, Args, Reply> {
  return { name: command, script: undefined, reply };
}

/** The subscribers of a channel that belong to this client, or that the script need not count. */
export type OwnSubscribers = number | 'not counted';

/** The argument of a hand-over script for them. */
export const subscribersArg = (ours: OwnSubscribers): number => (ours === 'not counted' ? -1 : ours);

/** Stands for PUBLISH or SPUBLISH in the arguments until the servers have replied which one they support. */
export const PUBLISH_COMMAND = '\0publish';

/** The roll that the arguments of a request name. `own` is empty: the script leaves it alone. */
export const rollIn = (waiters: string, own: string, most: number): Roll | undefined =>
  own === '' ? undefined : { waiters, own, most };

/** The reply of a script that ran after its not-after time and therefore changed nothing. */
export const TOO_LATE = -3;

/** Decodes 1 and "1": a hash field is text, and ioredis has an option that returns numbers as text. */
export function replyInt(raw: unknown): number {
  const n = typeof raw === 'number' ? raw : typeof raw === 'string' && raw !== '' ? Number(raw) : NaN;
  // Accept unsafe integers: the milliseconds of a very long lease may be rounded.
  if (!Number.isInteger(n)) throw unreadable('an integer', raw);
  return n;
}

/** Decodes the reply of PTTL, and of scripts that reply like it. */
export function replyTimeLeft(raw: unknown): TimeLeft {
  const left = replyInt(raw);
  if (left === -1) return 'no expiry';
  return left === -2 ? 'missing' : left;
}

/** The argument for the permits that a cancelled request took. */
export const cancelledArg = (permits: number | 'drained'): number => (permits === 'drained' ? -1 : permits);

/** The argument for the declared permits of a semaphore; -1 if its handle declares none. */
export const declaredArg = (declared: number | undefined): number => declared ?? -1;

/** The argument for a lease or an expiry; -1 if there is none. */
export const leaseArg = (leaseMs: number | undefined): number => leaseMs ?? -1;

export function replyInts(raw: unknown): number[] {
  return replyArray(raw).map(replyInt);
}

export function replyArray(raw: unknown): unknown[] {
  if (!Array.isArray(raw)) throw unreadable('an array', raw);
  return raw;
}

export function replyText(raw: unknown): string {
  if (typeof raw !== 'string') throw unreadable('a text', raw);
  return raw;
}

export const replyTexts = (raw: unknown): string[] => replyArray(raw).map(replyText);

const unreadable = (expected: string, raw: unknown): TypeError =>
  new TypeError(`expected ${expected} from Redis, got ${shortened(JSON.stringify(raw))}`);
