import { createHash } from 'node:crypto';

/** What a script, or a plain read, needs to be sent, and what its reply means. */
export interface Operation<Keys extends readonly string[], Args extends readonly (string | number)[], Reply> {
  /** `lock/acquire` for lua/lock/acquire.lua; for a read the command's name. */
  readonly name: string;
  readonly keys: number | 'variable';
  readonly args: number | 'variable';
  /** The script's text and address; a plain read has none. */
  readonly script: { readonly source: string; readonly sha: string } | undefined;
  /** The executor adds a last argument: the server time after which the script changes nothing. */
  readonly notAfter: boolean;
  reply(raw: unknown): Reply;
  /** Whether this reply tells of a grant, which replicas may have to confirm; absent where none ever does. */
  readonly confirmed?: ((reply: Reply) => boolean) | undefined;
  /** What it has published if this is its reply; absent where nobody depends on it. Its channel follows PUBLISH. */
  readonly wakeUp?: ((reply: Reply) => string | undefined) | undefined;
  /** What to do instead of a further attempt where the keys may be at two nodes for as long as a slot takes to move. */
  ifSplit?(keys: Keys, args: Args): IfSplit<Reply>;
  /** Never set: keeps the tuples in the type. */
  readonly types?: [Keys, Args];
}

export interface InsteadOf<Reply> {
  readonly operation: Operation<readonly string[], readonly (string | number)[], Reply>;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/** The request to send in its place; or the request fails at once; or the next attempt comes as after other errors. */
type IfSplit<Reply> = InsteadOf<Reply> | 'fail' | 'retry';

type Counted<T extends readonly unknown[]> = number extends T['length'] ? 'variable' : T['length'];

interface ScriptDefinition<Keys extends readonly string[], Args extends readonly (string | number)[], Reply> {
  file: string;
  source: string;
  keys: Counted<Keys>;
  /** Without the not-after, which the executor adds as the last one (or, with a variable tail, as the first). */
  args: Counted<Args>;
  notAfter: boolean;
  reply(raw: unknown): Reply;
  confirmed?: (reply: Reply) => boolean;
  wakeUp?: (reply: Reply) => string | undefined;
  ifSplit?(keys: Keys, args: Args): IfSplit<Reply>;
}

export function defineScript<Keys extends readonly string[], Args extends readonly (string | number)[], Reply>(
  definition: ScriptDefinition<Keys, Args, Reply>,
): Operation<Keys, Args, Reply> {
  const { file, source, keys, args, notAfter, reply, confirmed, wakeUp, ifSplit } = definition;
  const sha = createHash('sha1').update(source).digest('hex');
  const script = { source, sha };
  return { name: file, keys, args, script, notAfter, reply, confirmed, wakeUp, ...(ifSplit && { ifSplit }) };
}

export function defineRead<Args extends readonly string[], Reply, Keys extends readonly string[] = readonly [string]>(
  command: string,
  args: Counted<Args>,
  reply: (raw: unknown) => Reply,
  keys: number = 1,
): Operation<Keys, Args, Reply> {
  return { name: command, keys, args, script: undefined, notAfter: false, reply };
}

/** In place of the publishing command, where it is not known before the servers have been asked. */
export const PUBLISH_OF_TOPOLOGY = '\0publish';

/** Every script with a not-after answers this when it came too late to change anything. */
export const TOO_LATE = -3;

/** Accepts 1 and "1": ioredis has a stringNumbers option, and a hash field is text. */
export function replyInt(raw: unknown): number {
  const n = typeof raw === 'number' ? raw : typeof raw === 'string' && raw !== '' ? Number(raw) : NaN;
  // A lease may be so long that its ms are rounded on the way.
  if (!Number.isInteger(n)) throw new TypeError(`expected an integer from Redis, got ${JSON.stringify(raw)}`);
  return n;
}

/** Of a script that gives a lock to the next owner, or frees it. */
export function replyHandOff(raw: unknown): 'handed' | 'published' | 'gone' {
  const n = replyInt(raw);
  return n === 1 ? 'handed' : n === 2 ? 'published' : 'gone';
}

export function replyInts(raw: unknown): number[] {
  if (!Array.isArray(raw)) throw new TypeError(`expected an array from Redis, got ${JSON.stringify(raw)}`);
  return raw.map(replyInt);
}
