import type { Clock } from '../../../src/clock.js';
import { TOO_LATE } from '../../../src/redis/scripts/script.js';
import * as scripts from '../../../src/redis/scripts/lock.js';

interface Key {
  readonly fields: Map<string, number>;
  /** Server ms; the key is gone from the millisecond after it. */
  expiresAt: number;
}

/** A change by a script or by another client of the server. */
export interface Change {
  readonly kind: 'taken' | 'kept' | 'nested' | 'lowered' | 'handed' | 'freed' | 'renewed' | 'robbed';
  readonly key: string;
  readonly owner: string;
  /** The TTL before and after it, ms. */
  readonly before: number;
  readonly after: number;
}

export interface Subscribers {
  count(channel: string): number;
  publish(channel: string): void;
}

/** Server ms minus those of the clock that the clients read. */
export const AHEAD_MS = 1_700_000_000_000;

/** The plain lock's scripts on a store in memory, as lua/lock has them. Only for schedules too many for a server. */
export class FakeServer {
  readonly #keys = new Map<string, Key>();
  /** SHAs of the loaded scripts. */
  readonly #known = new Set<string>();
  readonly #scripts = new Map<string, (keys: string[], args: string[]) => unknown>([
    [scripts.acquire.script!.sha, (keys, args) => this.#acquire(keys, args)],
    [scripts.acquireNested.script!.sha, (keys, args) => this.#acquireNested(keys, args)],
    [scripts.releasePartial.script!.sha, (keys, args) => this.#releasePartial(keys, args)],
    [scripts.release.script!.sha, (keys, args) => this.#release(keys, args)],
    [scripts.handOff.script!.sha, (keys, args) => this.#handOff(keys, args)],
    [scripts.renew.script!.sha, (keys, args) => this.#renew(keys, args)],
  ]);

  constructor(
    private readonly clock: Clock,
    private readonly subscribers: Subscribers,
    private readonly onChange: (change: Change) => void,
  ) {}

  get now(): number {
    return AHEAD_MS + Math.floor(this.clock.monotonic());
  }

  /** The owner of a lock with its hold count; undefined: free. */
  holder(key: string): { owner: string; count: number; leftMs: number } | undefined {
    const found = this.#find(key);
    if (found === undefined) return undefined;
    const [[owner, count]] = [...found.fields] as [[string, number]];
    return { owner, count, leftMs: found.expiresAt - this.now };
  }

  get size(): number {
    return [...this.#keys.keys()].filter((key) => this.#find(key) !== undefined).length;
  }

  /** The replies of `EVALSHA`, `EVAL` and `HKEYS`. */
  run(name: string, words: readonly string[]): unknown {
    if (name === 'hkeys') return [...(this.#find(words[0]!)?.fields.keys() ?? [])];
    const [text, count] = words as [string, string];
    const sha = name === 'evalsha' ? text : SHA_OF.get(text)!;
    if (name === 'eval') this.#known.add(sha);
    else if (!this.#known.has(sha)) throw replyError('NOSCRIPT No matching script. Please use EVAL.');
    const keys = words.slice(2, 2 + Number(count));
    return this.#scripts.get(sha)!(keys, words.slice(2 + Number(count)));
  }

  flushScripts(): void {
    this.#known.clear();
  }

  /** An outside owner acquires a free lock, or releases its own. */
  stranger(key: string, leaseMs: number): void {
    const found = this.#find(key);
    if (found === undefined) this.#keys.set(key, { fields: new Map([[STRANGER, 1]]), expiresAt: this.now + leaseMs });
    else if (found.fields.has(STRANGER)) this.#free(key);
  }

  /** DEL by an outside client, without a message. */
  rob(key: string): void {
    const found = this.holder(key);
    if (found === undefined) return;
    this.#keys.delete(key);
    this.onChange({ kind: 'robbed', key, owner: found.owner, before: found.leftMs, after: 0 });
  }

  #find(key: string): Key | undefined {
    const found = this.#keys.get(key);
    if (found === undefined || found.expiresAt >= this.now) return found;
    this.#keys.delete(key);
    return undefined;
  }

  #left(key: string): number {
    const found = this.#find(key);
    return found === undefined ? -2 : found.expiresAt - this.now;
  }

  #late(notAfter: string | undefined): boolean {
    return Number(notAfter) > 0 && this.now > Number(notAfter);
  }

  #free(key: string): void {
    this.#keys.delete(key);
    this.subscribers.publish(key);
  }

  #set(kind: Change['kind'], key: string, owner: string, count: number, ttl: number): void {
    const before = this.#left(key);
    this.#keys.set(key, { fields: new Map([[owner, count]]), expiresAt: this.now + ttl });
    this.onChange({ kind, key, owner, before, after: ttl });
  }

  #acquire([key]: string[], [owner, lease, , , , , notAfter]: string[]): unknown {
    if (this.#late(notAfter)) return TOO_LATE;
    const found = this.#find(key!);
    const left = this.#left(key!);
    if (found !== undefined && !found.fields.has(owner!)) return left;
    this.#set(found === undefined ? 'taken' : 'kept', key!, owner!, 1, Math.max(left, Number(lease)));
    return null;
  }

  #acquireNested([key]: string[], [owner, count, lease, notAfter]: string[]): unknown {
    if (this.#late(notAfter)) return TOO_LATE;
    if (!this.#find(key!)?.fields.has(owner!)) return 0;
    this.#set('nested', key!, owner!, Number(count), Math.max(this.#left(key!), Number(lease)));
    return 1;
  }

  #releasePartial([key]: string[], [owner, count, lease, notAfter]: string[]): unknown {
    if (this.#late(notAfter)) return TOO_LATE;
    if (!this.#find(key!)?.fields.has(owner!)) return 0;
    this.#set('lowered', key!, owner!, Number(count), Number(lease));
    return 1;
  }

  #release([key]: string[], args: string[]): unknown {
    // The first eight are about the wake-up.
    const owners = args.slice(8);
    const found = this.holder(key!);
    if (found === undefined || !owners.includes(found.owner)) return 0;
    this.#free(key!);
    this.onChange({ kind: 'freed', key: key!, owner: found.owner, before: found.leftMs, after: 0 });
    return 1;
  }

  #handOff([key]: string[], [from, to, lease, , , ours, , , , , , notAfter]: string[]): unknown {
    if (this.#late(notAfter)) return TOO_LATE;
    const found = this.#find(key!);
    if (found?.fields.has(to!)) return 1;
    if (!found?.fields.has(from!)) return 0;
    if (Number(ours) >= 0 && this.subscribers.count(key!) > Number(ours)) {
      const before = this.#left(key!);
      this.#free(key!);
      this.onChange({ kind: 'freed', key: key!, owner: from!, before, after: 0 });
      return 2;
    }
    this.#set('handed', key!, to!, 1, Number(lease));
    return 1;
  }

  #renew(keys: string[], [notAfter, ...items]: string[]): unknown {
    if (this.#late(notAfter)) return TOO_LATE;
    return keys.map((key, i) => {
      const [owner, lease] = [items[2 * i]!, Number(items[2 * i + 1])];
      const found = this.#find(key);
      if (!found?.fields.has(owner)) return 0;
      const ttl = Math.max(this.#left(key), lease);
      this.#set('renewed', key, owner, found.fields.get(owner)!, ttl);
      return Math.max(ttl, 1);
    });
  }
}

export const STRANGER = 'stranger:1';

const SHA_OF = new Map(Object.values(scripts).flatMap(({ script }) => (script ? [[script.source, script.sha]] : [])));

export function replyError(message: string): Error {
  const error = new Error(message);
  error.name = 'ReplyError';
  return error;
}
