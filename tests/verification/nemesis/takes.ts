import { readFileSync } from 'node:fs';
import { CLOCK_SLACK_MS, type HistoryEvent } from '../../support/history/history-events.js';
import { sharesOwner } from '../../support/history/history-recorder.mjs';
import { mayFollow } from './hot-options.js';
import { isRed, keyOf } from './kinds.js';
import { COMMAND_TIMEOUT_MS } from './timing.js';
import type { RunningScript } from './running-script.js';

/** Scripts that create a hold, or add one. */
const TAKING = [
  'lock/acquire',
  'lock/acquire-nested',
  'lock/hand-off',
  'fair-lock/acquire',
  'fair-lock/hand-off',
  'fenced-lock/acquire',
  'fenced-lock/acquire-nested',
  'fenced-lock/hand-off',
  'read-write-lock/acquire-read',
  'read-write-lock/acquire-write',
  'read-write-lock/hand-off',
  'read-write-lock/nest-read',
  'read-write-lock/nest-write',
  'group-lock/acquire',
  'group-lock/acquire-nested',
];
/** The places of the owner and of the lease among their arguments. */
const PLACES: ReadonlyMap<string, readonly [owner: number, lease: number]> = new Map(
  TAKING.map((script) => {
    const place = argumentsOf(script);
    return [script, [place('to', 'writer', 'owner'), place('lease')]];
  }),
);

/** By the header of the script. */
function argumentsOf(script: string): (...names: string[]) => number {
  const header = readFileSync(new URL(`../../../lua/${script}.lua`, import.meta.url), 'utf8');
  const places = new Map(
    [...header.matchAll(/^-- ARGV\[(\d+)\] +(\w+)/gm)].map(([, at, name]) => [name, Number(at) - 1]),
  );
  return (...names) => {
    const place = places.get(names.find((name) => places.has(name)));
    if (place === undefined) throw new Error(`the header of ${script} has no ${names.join(', ')}`);
    return place;
  };
}

/** A script that created a hold, or added one. */
export interface Take {
  readonly at: number;
  readonly script: string;
  readonly lock: string;
  readonly owner: string;
  readonly leaseTime: number;
}

/** The effect of this script on a lock, if it is an acquiring script. */
export function takeBy(running: RunningScript | undefined, at: number, lock: string): Take | undefined {
  const { script = '', args = [] } = running ?? {};
  const places = PLACES.get(script);
  if (!places) return undefined;
  const [owner, lease] = places;
  return {
    at,
    script,
    lock,
    owner: (args[owner] ?? '').replace(/:write$/, ''),
    leaseTime: Number(args[lease]),
  };
}

/** Whether sections may follow the one that the script takes the lock for, without a request. */
const asksForMore = (script: string, lock: string): boolean =>
  mayFollow(lock) && !script.includes('nest') && !script.endsWith('/acquire-read');

/** A request to one of a RedLock's servers takes nothing later than its deadline, and a little for the clocks. */
const ON_ITS_WAY_MS = COMMAND_TIMEOUT_MS + 200;

/**
 * The takes as effects of the calls they were made for. A call is found by its process, its lock and its lease, which
 * no two calls of a process share for a long while.
 */
export function effectsOf(
  takes: readonly Take[],
  history: readonly HistoryEvent[],
  processOf: (owner: string) => string | undefined,
  leaseWithoutOne: (process: string) => number,
  /** ms by which a request of this process for a first hold asks for more than the lease of the call. */
  extraLease: (process: string) => number,
): HistoryEvent[] {
  const calls = new Map<string, Call[]>();
  const byId = new Map<string, Call>();
  const byHold = new Map<string, Call>();
  for (const event of history) {
    if (event.type === 'acquire-invoke') {
      if (event.permits !== undefined) continue;
      const { process, lock, joint } = event;
      const call: Call = {
        id: event.call,
        lock,
        joint: joint === true,
        from: event.at,
        grantedAt: event.at,
        until: Infinity,
        owner: undefined,
      };
      const watched = leaseWithoutOne(process);
      // A multi-lock that waits for further members renews its granted ones. A RedLock releases them.
      const leases = new Set([event.leaseTime ?? watched, ...(joint && !isRed(lock) ? [watched] : [])]);
      for (const leaseTime of leases) {
        const key = `${process} ${keyOf(lock)} ${leaseTime}`;
        const same = calls.get(key);
        if (same) same.push(call);
        else calls.set(key, [call]);
      }
      byId.set(call.id, call);
    } else if (event.type === 'acquire-ok' || event.type === 'acquire-fail' || event.type === 'acquire-unknown') {
      const call = byId.get(event.call);
      if (!call) continue;
      call.until = event.at;
      if (event.type !== 'acquire-ok') continue;
      call.owner = event.owner;
      // A server that answers late still joins.
      if (isRed(call.lock)) call.until = Infinity;
      call.grantedAt = event.at;
      byHold.set(event.hold, call);
    } else if (event.type === 'release-ok' || event.type === 'release-fail') {
      const call = byHold.get(event.hold);
      // The release does not wait for pending grants. They are released on arrival.
      if (call && isRed(call.lock)) call.until = Math.max(event.at, call.grantedAt + ON_ITS_WAY_MS);
    }
  }
  return takes.map(({ at, script, lock, owner, leaseTime }): HistoryEvent => {
    const process = processOf(owner);
    const extra = asksForMore(script, lock) ? extraLease(process ?? '') : 0;
    // No section follows the member of a hold of several locks, so its request asks for its lease alone.
    const of = (isJoint: boolean): Call[] => {
      const asked = calls.get(`${process ?? ''} ${lock} ${isJoint ? leaseTime : leaseTime - extra}`) ?? [];
      return asked.filter(({ from, joint }) => from <= at && joint === isJoint);
    };
    const candidates = [...of(false), ...of(true)].sort((a, b) => a.from - b.from);
    const call =
      candidates.findLast((each) => each.until >= at) ??
      candidates.findLast((each) => each.owner !== undefined && sharesOwner(each.owner, owner)) ??
      candidates.at(-1);
    const effect = `${script} for ${owner} with a lease of ${leaseTime} ms`;
    if (!call)
      return { type: 'left', what: 'key', name: `${lock}: ${effect}, without a request`, at, process: 'server' };
    return { type: 'effect', call: call.id, effect, at: Math.max(call.from, at - CLOCK_SLACK_MS), process: 'server' };
  });
}

interface Call {
  readonly id: string;
  readonly lock: string;
  readonly joint: boolean;
  readonly from: number;
  grantedAt: number;
  until: number;
  owner: string | undefined;
}
