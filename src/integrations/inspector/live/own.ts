import type { LockClient } from '../../../index.js';
import type { Own, OwnHold, OwnStats, OwnWait, ProcessView, Row, WaitEdge } from '../contract/messages.js';
import type { Table } from './table.js';

const MAX_OWN = 100;
const MAX_EDGES = 200;

/** The part of the client that reads slowly. */
export type Overview = ReturnType<LockClient['overview']>;

/** What the client holds and waits for. */
export function ownOf(client: LockClient, overview: Overview): Own {
  const holds = overview
    .holds()
    .map(({ lockName: name, kind, owner, holdCount, age, remaining, isRenewed, callSite = null }): OwnHold => ({
      ...{ name, kind, owner, holdCount, age, isRenewed, callSite },
      remaining: Math.round(remaining),
    }));
  const waits = overview.waits().map(({ lockName: name, kind, age, callSite = null }): OwnWait => ({
    ...{ name, kind: kind ?? 'permits or latch', callSite },
    age: Math.round(age),
  }));
  return {
    holds: oldestFirst(holds).slice(0, MAX_OWN),
    holdCount: holds.length,
    waits: oldestFirst(waits).slice(0, MAX_OWN),
    waitCount: waits.length,
    stats: statsOf(client),
  };
}

const oldestFirst = <T extends { readonly age: number }>(list: readonly T[]): T[] =>
  [...list].sort((a, b) => b.age - a.age);

function statsOf(client: LockClient): OwnStats {
  const { acquisitions, waits, handOvers, renewals, renewalFailures, losses } = client.stats();
  const sums = { granted: 0, busy: 0, aborted: 0, failed: 0 };
  for (const counts of Object.values(acquisitions)) {
    sums.granted += counts.granted;
    sums.busy += counts.busy;
    sums.aborted += counts.aborted;
    sums.failed += counts.failed;
  }
  return { ...sums, waits, handOvers, renewals, renewalFailures, losses };
}

/** Who waits for whom: the calls of the client, the queues of fair locks, and the number of all others. */
export function waitEdges(table: Table, overview: Overview, process: ProcessView): WaitEdge[] {
  const waits = overview.waits();
  const own = new Set(waits.map(({ lockName }) => lockName));
  const edges = waits.map(({ lockName, age, callSite, owner }): WaitEdge => ({
    name: lockName,
    waiter: 'this client',
    count: 1,
    owner: owner ?? null,
    process,
    callSite: callSite ?? null,
    age: Math.round(age),
    holders: table.get(lockName)?.row.owners ?? [],
  }));
  for (const { row } of table) if ((row.waiters ?? 0) > 0) edges.push(...othersOf(row, own.has(row.name)));
  return edges.sort((a, b) => (b.age ?? -1) - (a.age ?? -1)).slice(0, MAX_EDGES);
}

function othersOf({ name, queue, waiters, owners: holders }: Omit<Row, 'readAgo'>, isOwn: boolean): WaitEdge[] {
  const unknown = { name, callSite: null, age: null, holders };
  const queued = queue.filter(({ isThisClient }) => !isThisClient);
  if (queue.length > 0) {
    return queued.map(({ owner, process }) => ({ ...unknown, waiter: 'queued', count: 1, owner, process }));
  }
  // The client counts once, however many of its calls wait.
  const count = (waiters ?? 0) - (isOwn ? 1 : 0);
  return count > 0 ? [{ ...unknown, waiter: 'others', count, owner: null, process: null }] : [];
}
