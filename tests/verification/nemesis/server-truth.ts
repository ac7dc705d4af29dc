import { CLOCK_SLACK_MS, type Confirmed, type EventOf } from '../../support/history/history-events.js';
import { GroupTruth } from './group-truth.js';
import { isExclusive, isRed, isShared, kindOf } from './kinds.js';
import { runningScript, type RunningScript } from './running-script.js';
import { FROM_MASTER, type SeenLine } from './seen-line.js';
import { ReadWriteTruth } from './read-write-truth.js';
import { afterPexpire, ServerView, type Ended } from './server-view.js';
import { takeBy, type Take } from './takes.js';

/** The effects of scripts on a lock. */
const WRITES = new Set(['HSET', 'HDEL', 'DEL', 'PEXPIRE']);

interface Owned {
  readonly owner: string;
  readonly from: number;
  expiresAt: number;
  /** The command that set its lease last. */
  leased: string;
  readonly confirmed: Confirmed[];
  readonly handedOver?: boolean;
}

/** Writes that a server had acknowledged and that its successor never saw. */
export interface LostWrites {
  readonly lock: string;
  /** Between these times the lock was deleted without the library. */
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

/** Replicas receive absolute times in whole ms. */
const SAME_MS = 5;
const REMEMBERED = 200;
const SHOWN = 12;

/**
 * The history of the locks at the servers, from the output of MONITOR: the owners of each lock with their times, and
 * the script of each grant. It does not use the reports of the clients.
 *
 * With several servers a lock is where the last script wrote to it. When a script writes elsewhere, that server's own
 * view has to be the known state. If it is an earlier state instead, the later writes were lost.
 */
export class ServerTruth {
  readonly held: EventOf<'held'>[] = [];
  readonly takes: Take[] = [];
  /** Impossible events: then the log, or its interpretation, is wrong. */
  readonly contradictions: string[] = [];
  readonly lost: LostWrites[] = [];
  readonly #owned = new Map<string, Owned>();
  readonly #views: readonly ServerView[];
  readonly #at = new Map<string, number>();
  readonly #states = new Map<string, State[]>();
  readonly #readWrite: ReadWriteTruth;
  readonly #groups: GroupTruth;
  readonly #running: (RunningScript | undefined)[] = [];

  /** `wallAhead`: the servers' clock minus that of the histories, ms. */
  constructor(
    private readonly wallAhead: number,
    servers = 1,
    private readonly replicated = servers > 1,
  ) {
    const ended: Ended = (held) => void this.held.push({ type: 'held', process: 'server', ...held });
    this.#readWrite = new ReadWriteTruth(wallAhead, ended);
    this.#groups = new GroupTruth(wallAhead, ended);
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
    if ((isShared(lock) || isRed(lock)) && source === 'lua' && command === 'HSET') this.#take(at, lock, node);
    const shared = ReadWriteTruth.lockOf(lock);
    // With several servers, their place is unknown.
    if (isShared(shared) && !this.replicated) {
      const handedOn = this.#running[node]?.script.endsWith('/hand-off') === true;
      if (kindOf(shared) === 'readwrite') this.#readWrite.apply(at, command, args, handedOn);
      else this.#groups.apply(at, command, args);
    }
    if (!isExclusive(lock)) return;
    const home = this.#at.get(lock);
    if (command === 'LEAVES') {
      // It may have taken the lock over, and not have written to it since.
      if (home !== undefined && home !== node) this.#goOnAt(view, lock, at, `its slot leaves ${node}`);
      this.#at.set(lock, node);
      return;
    }
    if (command === 'RESTORE-ASKING' || command === 'RESTORE') {
      // The slot moves, and the key comes from where it was. A replica of its new master runs the same for that one.
      if (home !== undefined) view.set(lock, this.#views[home]?.entry(lock));
      if (source === FROM_MASTER || home === undefined || home === node) return;
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
    // It follows another one now, which had an older entry end. Whether that one had this one its own lines say.
    if (source === FROM_MASTER && command === 'DEL' && this.#isUnknownElsewhere(lock, node))
      return this.#goOnAt(view, lock, at, `the master of ${node} let it end`);
    this.#apply(at, command, args, node);
    const now = this.#owned.get(lock);
    const states = this.#states.get(lock) ?? [];
    if (states.length === 0) this.#states.set(lock, states);
    const [last, expiresAt] = [states.at(-1), now?.expiresAt ?? Infinity];
    // Most commands only read. Their results must not displace the known writes.
    if (last?.owner === now?.owner && last?.expiresAt === expiresAt) return;
    states.push({ at, owner: now?.owner, expiresAt });
    if (states.length > REMEMBERED) states.shift();
  }

  /** Some other server never had the lock as its owner's. */
  #isUnknownElsewhere(lock: string, node: number): boolean {
    const owner = this.#owned.get(lock)?.owner;
    return (
      owner !== undefined && this.#views.some((view, other) => other !== node && view.entry(lock)?.owner !== owner)
    );
  }

  /**
   * A replica has the state of its master. If it was the last master to be written to, its history continues at the new
   * master, also without a write there.
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
    if (has) {
      const { owner, expiresAt } = has;
      const confirmed = [{ at, until: expiresAt }];
      this.#owned.set(lock, { owner, from: at, expiresAt, leased: 'before it came here', confirmed });
    }
  }

  /** The servers have lost all data, or are no longer monitored. */
  end(at: number): void {
    this.#readWrite.end(at);
    this.#groups.end(at);
    for (const lock of [...this.#owned.keys()]) this.#gone(lock, at, 'no monitor is left');
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
        owned.expiresAt = afterPexpire(owned.expiresAt, rest, at, this.wallAhead);
        owned.confirmed.push({ at, until: owned.expiresAt });
        owned.leased = `${rest[0]} ms by ${this.#running[node]?.script ?? 'an unknown client'} at ${at}`;
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
        this.contradictions.push(`no known client runs ${command} ${lock} ${rest.join(' ')}`);
    }
  }

  #set(at: number, lock: string, owner: string, node: number): void {
    const { script = '' } = this.#running[node] ?? {};
    let owned = this.#owned.get(lock);
    if (owned && owned.owner !== owner) {
      // The lock was handed over, or expired in this millisecond, or the log contradicts itself.
      if (owned.expiresAt > at + 2 && !script.endsWith('/hand-off'))
        this.contradictions.push(`${owner} was put beside ${owned.owner} in ${lock}`);
      this.#gone(lock, Math.min(owned.expiresAt, at), `it went to ${owner}`);
      owned = undefined;
    }
    const handedOver = script.endsWith('/hand-off');
    if (!owned)
      this.#owned.set(lock, { owner, from: at, expiresAt: Infinity, leased: 'never', confirmed: [], handedOver });
    this.#take(at, lock, node);
  }

  #take(at: number, lock: string, node: number): void {
    const take = takeBy(this.#running[node], at, lock);
    if (take) this.takes.push(take);
  }

  #gone(lock: string, at: number, how: string): void {
    const owned = this.#owned.get(lock);
    if (!owned) return;
    this.#owned.delete(lock);
    const { owner, from, expiresAt, leased, confirmed, handedOver = false } = owned;
    const ended = `${how}; leased ${leased}`;
    const until = Math.min(at, expiresAt);
    this.held.push({ type: 'held', process: 'server', lock, owner, from, at: until, ended, handedOver, confirmed });
  }
}
