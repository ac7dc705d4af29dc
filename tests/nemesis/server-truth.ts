import type { HistoryEvent } from '../support/history-events.js';
import { ALL_SCRIPTS } from '../support/lock-scripts.js';
import type { MonitorLine } from '../support/monitor-log.js';
import { isExclusive, isShared, keyOf } from './kinds.js';
import { ServerView } from './server-view.js';

/** What scripts do to a lock. */
const WRITES = new Set(['HSET', 'HDEL', 'DEL', 'PEXPIRE']);
/** What the server's stamps, turned into ours, may be off. */
const CLOCK_SLACK_MS = 2;

/** Scripts that create a hold, or add one: where their arguments have the owner and the lease. */
const TAKING: Readonly<Record<string, readonly [owner: number, lease: number]>> = {
  'lock/acquire': [0, 1],
  'lock/acquire-nested': [0, 2],
  'lock/hand-off': [1, 2],
  'fair-lock/acquire': [0, 1],
  'fenced-lock/acquire': [0, 1],
  'fenced-lock/acquire-nested': [0, 2],
  'fenced-lock/hand-off': [1, 2],
  'read-write-lock/acquire-read': [0, 1],
  'read-write-lock/acquire-write': [0, 1],
  'read-write-lock/nest-read': [0, 2],
  'read-write-lock/nest-write': [0, 2],
  'group-lock/acquire': [1, 2],
  'group-lock/acquire-nested': [1, 2],
};

/** A script that created a hold, or added one. */
export interface Take {
  readonly at: number;
  readonly script: string;
  readonly lock: string;
  readonly owner: string;
  readonly leaseTime: number;
}

interface Running {
  readonly script: string;
  readonly args: readonly string[];
}

interface Owned {
  readonly owner: string;
  readonly from: number;
  expiresAt: number;
  /** What set its lease last. */
  leased: string;
}

/**
 * A line of MONITOR, and which server ran it. Some commands are the bench's own: SYNCED (it has what the server of this
 * number has), STATE (it has this: lock, owner or nothing, ms, and so on) and LEAVES (this lock's slot leaves from it).
 */
export interface SeenLine extends MonitorLine {
  readonly node: number;
}

/** Writes that a server had acknowledged and that its successor never saw. */
export interface LostWrites {
  readonly lock: string;
  /** Between these the lock was taken away behind the library's back. */
  readonly from: number;
  readonly at: number;
  readonly before: string | undefined;
  readonly after: string | undefined;
  /** How that was seen. */
  readonly by: string;
}

interface State {
  readonly at: number;
  readonly owner: string | undefined;
  readonly expiresAt: number;
}

/** Replicas are told absolute times, in whole ms. */
const SAME_MS = 5;
const REMEMBERED = 200;
const SHOWN = 12;

/**
 * What happened to the locks at the servers, from what MONITOR tells: who had which lock from when to when, and which
 * script gave it. Knows nothing of the clients.
 *
 * With several servers a lock is where the last script wrote to it. When a script writes elsewhere, that server's own
 * view has to be what was known; if it is an earlier state instead, what came after that state was lost on the way.
 */
export class ServerTruth {
  readonly held: HistoryEvent[] = [];
  readonly takes: Take[] = [];
  /** What a lock cannot do; then the log or the reading of it is wrong. */
  readonly contradictions: string[] = [];
  readonly lost: LostWrites[] = [];
  readonly #owned = new Map<string, Owned>();
  readonly #views: readonly ServerView[];
  readonly #at = new Map<string, number>();
  readonly #states = new Map<string, State[]>();
  readonly #running: (Running | undefined)[] = [];

  /** `wallAhead`: the servers' clock minus that of the histories, ms. */
  constructor(
    private readonly wallAhead: number,
    servers = 1,
  ) {
    this.#views = Array.from({ length: servers }, () => new ServerView(wallAhead));
  }

  read(lines: readonly SeenLine[]): void {
    for (const line of lines) {
      if (line.source !== 'lua') this.#running[line.node] = runningScript(line.command, line.args);
      this.#read(line, line.time - this.wallAhead);
    }
  }

  #read({ node, command, args, source }: SeenLine, at: number): void {
    const view = this.#views[node] as ServerView;
    const [lock = ''] = args;
    if (command === 'SYNCED') return this.#synced(node, Number(lock), at);
    if (command === 'STATE') {
      for (let i = 0; i < args.length; i += 3) {
        const [name = '', owner, ms] = args.slice(i, i + 3);
        view.set(name, owner ? { owner, expiresAt: at + Number(ms) } : undefined);
      }
      return;
    }
    if (isShared(lock) && source === 'lua' && command === 'HSET') return this.#take(at, lock, node);
    if (!isExclusive(lock)) return;
    const home = this.#at.get(lock);
    if (command === 'LEAVES') {
      // It may have taken the lock over, and not have written to it since.
      if (home !== undefined && home !== node) this.#goOnAt(view, lock, at, `its slot leaves ${node}`);
      this.#at.set(lock, node);
      return;
    }
    if (command === 'RESTORE-ASKING' || command === 'RESTORE') {
      // The slot moves: the key comes from where it was, to a master or, after that, to its replica.
      if (home !== undefined) view.set(lock, this.#views[home]?.entry(lock));
      if (command === 'RESTORE' || home === undefined || home === node) return;
      this.#views[home]?.set(lock, undefined);
      this.#at.set(lock, node);
      return;
    }
    if (source === 'lua' && WRITES.has(command)) {
      if (home !== undefined && home !== node) this.#goOnAt(view, lock, at, `${command} at ${node} after ${home}`);
      this.#at.set(lock, node);
    }
    view.apply(at, command, args);
    if (this.#at.get(lock) !== node) return;
    this.#apply(at, command, args, node);
    const now = this.#owned.get(lock);
    const states = this.#states.get(lock) ?? [];
    if (states.length === 0) this.#states.set(lock, states);
    const [last, expiresAt] = [states.at(-1), now?.expiresAt ?? Infinity];
    // Most commands only look; what they saw must not push out what was.
    if (last?.owner === now?.owner && last?.expiresAt === expiresAt) return;
    states.push({ at, owner: now?.owner, expiresAt });
    if (states.length > REMEMBERED) states.shift();
  }

  /**
   * A replica has what its master has. What it was the last to be written to as a master went on at that one, also if
   * nobody has written there since.
   */
  #synced(node: number, master: number, at: number): void {
    const [copy, original] = [node, master].map((each) => this.#views[each] as ServerView) as [ServerView, ServerView];
    if (copy === original) return;
    for (const [lock, home] of this.#at) {
      if (home !== node) continue;
      this.#goOnAt(original, lock, at, `${node} follows ${master}`);
      this.#at.set(lock, master);
    }
    copy.copy(original);
  }

  /** Another server has the lock from now on. */
  #goOnAt(view: ServerView, lock: string, at: number, by: string): void {
    const entry = view.entry(lock);
    const was = this.#owned.get(lock);
    // The same lease, also if this is the very millisecond in which it ends.
    if (was && entry?.owner === was.owner && entry.expiresAt >= was.expiresAt - SAME_MS) return;
    this.#expire(lock, at);
    const known = this.#owned.get(lock);
    const has = entry && entry.expiresAt >= at ? entry : undefined;
    if (known === undefined && has === undefined) return;
    const states = this.#states.get(lock) ?? [];
    const same = ({ owner, expiresAt }: State): boolean =>
      owner === entry?.owner && (!entry || Math.abs(expiresAt - entry.expiresAt) < SAME_MS || expiresAt === Infinity);
    const last = states.findLastIndex(same);
    if (last < 0 && (entry || states.length >= REMEMBERED))
      this.contradictions.push(
        `${lock} is at its new server as it never was: ${JSON.stringify({ at, entry, known, before: states.slice(-SHOWN) })}`,
      );
    const from = states[last + 1]?.at ?? at;
    this.lost.push({
      lock,
      from: from - CLOCK_SLACK_MS,
      at: at + CLOCK_SLACK_MS,
      before: known?.owner,
      after: has?.owner,
      by: `${by}; known ${known?.leased}, it had ${JSON.stringify(entry)}`,
    });
    this.#gone(lock, at, 'its slot went to another server');
    if (has)
      this.#owned.set(lock, { owner: has.owner, from: at, expiresAt: has.expiresAt, leased: 'before it came here' });
  }

  /** The servers have lost everything, or nobody watches them any more. */
  end(at: number): void {
    for (const lock of [...this.#owned.keys()]) this.#gone(lock, at, 'nobody looks any more');
  }

  #expire(lock: string, at: number): void {
    const owned = this.#owned.get(lock);
    if (owned && owned.expiresAt < at) this.#gone(lock, owned.expiresAt, 'it ended');
  }

  #apply(at: number, command: string, [lock = '', ...rest]: readonly string[], node: number): void {
    this.#expire(lock, at);
    const owned = this.#owned.get(lock);
    switch (command) {
      case 'HSET':
        return this.#set(at, lock, rest[0] ?? '', node);
      case 'PEXPIRE':
        if (!owned) return;
        owned.expiresAt = Math.floor(at + this.wallAhead) - this.wallAhead + Number(rest[0]);
        owned.leased = `${rest[0]} ms by ${this.#running[node]?.script ?? 'nobody we know'} at ${at}`;
        return;
      case 'HDEL':
        if (owned && rest.includes(owned.owner))
          this.#gone(lock, at, `${command} by ${this.#running[node]?.script ?? 'another command'}`);
        return;
      case 'DEL':
        return this.#gone(lock, at, `${command} by ${this.#running[node]?.script ?? 'another command'}`);
      case 'PERSIST':
      case 'FLUSHALL':
      case 'FLUSHDB':
        this.contradictions.push(`nobody here runs ${command} ${lock} ${rest.join(' ')}`);
    }
  }

  #set(at: number, lock: string, owner: string, node: number): void {
    const { script = '' } = this.#running[node] ?? {};
    let owned = this.#owned.get(lock);
    if (owned && owned.owner !== owner) {
      // It was handed on, or it had expired in that very millisecond, or it is a contradiction.
      if (owned.expiresAt > at + 2 && !script.endsWith('/hand-off'))
        this.contradictions.push(`${owner} was put beside ${owned.owner} in ${lock}`);
      this.#gone(lock, Math.min(owned.expiresAt, at), `it went to ${owner}`);
      owned = undefined;
    }
    if (!owned) this.#owned.set(lock, { owner, from: at, expiresAt: Infinity, leased: 'never' });
    this.#take(at, lock, node);
  }

  #take(at: number, lock: string, node: number): void {
    const { script = '', args = [] } = this.#running[node] ?? {};
    const places = TAKING[script];
    if (!places) return;
    const [owner, lease] = places;
    this.takes.push({
      at,
      script,
      lock,
      owner: (args[owner] ?? '').replace(/:write$/, ''),
      leaseTime: Number(args[lease]),
    });
  }

  #gone(lock: string, at: number, how: string): void {
    const owned = this.#owned.get(lock);
    if (!owned) return;
    this.#owned.delete(lock);
    const { owner, from, expiresAt, leased } = owned;
    const ended = `${how}; leased ${leased}`;
    this.held.push({ type: 'held', process: 'server', lock, owner, from, at: Math.min(at, expiresAt), ended });
  }
}

function runningScript(
  command: string,
  [script = '', keyCount = '0', ...rest]: readonly string[],
): Running | undefined {
  if (command !== 'EVALSHA' && command !== 'EVAL') return undefined;
  const name = SCRIPT_NAMES.get(script);
  return name === undefined ? undefined : { script: name, args: rest.slice(Number(keyCount)) };
}

const SCRIPT_NAMES: ReadonlyMap<string, string> = new Map(
  [...ALL_SCRIPTS].flatMap(([name, { sha, source }]) => [
    [sha, name],
    [source, name],
  ]),
);

/**
 * The takes as effects of the calls they were made for. A call is found by its process, its lock and its lease, which
 * no two calls of a process share for a long while.
 */
export function effectsOf(
  takes: readonly Take[],
  history: readonly HistoryEvent[],
  processOf: (owner: string) => string | undefined,
  leaseWithoutOne: (process: string) => number,
): HistoryEvent[] {
  const calls = new Map<string, Call[]>();
  const byId = new Map<string, Call>();
  for (const event of history) {
    if (event.type === 'acquire-invoke') {
      if (event.permits !== undefined) continue;
      const { process, lock, joint } = event;
      const call: Call = { id: event.call, from: event.at, until: Infinity, owner: undefined };
      const watched = leaseWithoutOne(process);
      const leases = new Set([event.leaseTime ?? watched, ...(joint ? [watched] : [])]);
      for (const leaseTime of leases) {
        const key = `${process} ${keyOf(lock)} ${leaseTime}`;
        const same = calls.get(key);
        if (same) same.push(call);
        else calls.set(key, [call]);
      }
      byId.set(call.id, call);
    } else if (event.type === 'acquire-ok' || event.type === 'acquire-fail' || event.type === 'acquire-unknown') {
      const call = byId.get(event.call);
      if (call) call.until = event.at;
      if (call && event.type === 'acquire-ok') call.owner = event.owner;
    }
  }
  return takes.map(({ at, script, lock, owner, leaseTime }): HistoryEvent => {
    const process = processOf(owner);
    const candidates = calls.get(`${process ?? ''} ${lock} ${leaseTime}`)?.filter(({ from }) => from <= at) ?? [];
    const call =
      candidates.findLast((each) => each.until >= at) ??
      candidates.findLast((each) => each.owner === owner) ??
      candidates.at(-1);
    const effect = `${script} for ${owner} with a lease of ${leaseTime} ms`;
    if (!call)
      return { type: 'left', what: 'key', name: `${lock}: ${effect}, which nobody asked for`, at, process: 'server' };
    return { type: 'effect', call: call.id, effect, at: Math.max(call.from, at - CLOCK_SLACK_MS), process: 'server' };
  });
}

interface Call {
  readonly id: string;
  readonly from: number;
  until: number;
  owner: string | undefined;
}
