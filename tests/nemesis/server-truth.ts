import type { HistoryEvent } from '../support/history-events.js';
import { FAIR_SCRIPTS, LOCK_SCRIPTS } from '../support/lock-scripts.js';
import type { MonitorLine } from '../support/monitor-log.js';

/** What the server's stamps, turned into ours, may be off. */
const CLOCK_SLACK_MS = 2;

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
}

/**
 * What happened to the locks at the server, from what MONITOR tells: who had which lock from when to when, and which
 * script gave it. Knows nothing of the clients.
 */
export class ServerTruth {
  readonly held: HistoryEvent[] = [];
  readonly takes: Take[] = [];
  /** What a lock cannot do; then the log or the reading of it is wrong. */
  readonly contradictions: string[] = [];
  readonly #owned = new Map<string, Owned>();
  #running: Running | undefined;

  /** `wallAhead`: the server's clock minus that of the histories, ms. */
  constructor(private readonly wallAhead: number) {}

  read(lines: readonly MonitorLine[]): void {
    for (const { time, command, args, source } of lines) {
      if (source !== 'lua') this.#running = runningScript(command, args);
      this.#apply(time - this.wallAhead, command, args);
    }
  }

  /** The server has lost everything, or nobody watches it any more. */
  end(at: number): void {
    for (const lock of [...this.#owned.keys()]) this.#gone(lock, at);
  }

  #apply(at: number, command: string, [lock = '', field = '', value = '']: readonly string[]): void {
    const owned = this.#owned.get(lock);
    if (owned && owned.expiresAt < at) this.#gone(lock, owned.expiresAt);
    switch (command) {
      case 'HSET':
        return this.#set(at, lock, field);
      case 'PEXPIRE':
        if (owned) owned.expiresAt = Math.floor(at + this.wallAhead) - this.wallAhead + Number(field);
        return;
      case 'HDEL':
        if (owned?.owner === field) this.#gone(lock, at);
        return;
      case 'DEL':
        return this.#gone(lock, at);
      case 'PERSIST':
      case 'FLUSHALL':
      case 'FLUSHDB':
        this.contradictions.push(`nobody here runs ${command} ${lock} ${value}`);
    }
  }

  #set(at: number, lock: string, owner: string): void {
    let owned = this.#owned.get(lock);
    if (owned && owned.owner !== owner) {
      // It was handed on, or it had expired in that very millisecond, or it is a contradiction.
      if (owned.expiresAt > at + 2 && this.#running?.script !== 'hand-off')
        this.contradictions.push(`${owner} was put beside ${owned.owner} in ${lock}`);
      this.#gone(lock, Math.min(owned.expiresAt, at));
      owned = undefined;
    }
    if (!owned) this.#owned.set(lock, { owner, from: at, expiresAt: Infinity });
    const { script = '', args = [] } = this.#running ?? {};
    const leaseTime = Number(args[script === 'acquire' ? 1 : 2]);
    if (['acquire', 'acquire-nested', 'hand-off'].includes(script))
      this.takes.push({ at, script, lock, owner, leaseTime });
  }

  #gone(lock: string, at: number): void {
    const owned = this.#owned.get(lock);
    if (!owned) return;
    this.#owned.delete(lock);
    const { owner, from, expiresAt } = owned;
    this.held.push({ type: 'held', process: 'server', lock, owner, from, at: Math.min(at, expiresAt) });
  }
}

function runningScript(
  command: string,
  [script = '', keyCount = '0', ...rest]: readonly string[],
): Running | undefined {
  if (command !== 'EVALSHA' && command !== 'EVAL') return undefined;
  for (const [name, { sha, source }] of [...LOCK_SCRIPTS, ...FAIR_SCRIPTS]) {
    if (script === sha || script === source) return { script: name, args: rest.slice(Number(keyCount)) };
  }
  return undefined;
}

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
      const { process, lock, leaseTime = leaseWithoutOne(process) } = event;
      const call: Call = { id: event.call, from: event.at, until: Infinity, owner: undefined };
      const key = `${process} ${lock} ${leaseTime}`;
      const same = calls.get(key);
      if (same) same.push(call);
      else calls.set(key, [call]);
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
