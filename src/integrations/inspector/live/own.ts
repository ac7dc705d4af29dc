import type { LockClient } from '../../../index.js';
import type { Named, Own, OwnHold, OwnStats, OwnWait, ProcessView, WaitEdge } from '../contract/messages.js';
import { cut, namedOf } from './named.js';
import type { Overview } from './overview.js';
import type { Table, TableRow } from './table.js';

/** Number of own holds, and of own waits, that a page shows. */
const MAX_OWN = 100;
const MAX_EDGES = 200;
/** The most bytes of a line of code. */
const MAX_SITE = 300;
/** Number of owners that an edge names. */
const MAX_HOLDERS = 3;

/** What the client holds and waits for. `names` gets the whole names by their ids, in place of those that it has. */
export function ownOf(client: LockClient, overview: Overview, names: Map<string, string>): Own {
  const [holds, waits] = [overview.holds(MAX_OWN), overview.waits(MAX_OWN)];
  names.clear();
  const note = (name: string): Named => {
    const named = namedOf(name);
    names.set(named.id, name);
    return named;
  };
  return {
    holds: holds.first.map(({ lockName, kind, owner, holdCount, age, remaining, isRenewed, callSite }): OwnHold => ({
      ...note(lockName),
      ...{ kind, owner, holdCount, age, isRenewed, callSite: siteOf(callSite) },
      remaining: Math.round(remaining),
    })),
    holdCount: holds.count,
    waits: waits.first.map(({ lockName, kind, age, callSite }): OwnWait => ({
      ...note(lockName),
      ...{ kind: kind ?? 'permits or latch', callSite: siteOf(callSite) },
      age: Math.round(age),
    })),
    waitCount: waits.count,
    stats: statsOf(client),
  };
}

const siteOf = (callSite: string | undefined): string | null =>
  callSite === undefined ? null : cut(callSite, MAX_SITE);

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
  const waits = overview.waits(MAX_EDGES).first;
  const own = new Set(waits.map(({ lockName }) => lockName));
  const edges = waits.map(({ lockName, age, callSite, owner }): WaitEdge => {
    const named = namedOf(lockName);
    const wait = { owner: owner ?? null, process, callSite: siteOf(callSite), age: Math.round(age) };
    return { ...named, waiter: 'this client', count: 1, ...wait, ...holdersOf(table.byId(named.id)) };
  });
  for (const found of table) {
    if (edges.length >= MAX_EDGES) break;
    if ((found.row.waiters ?? 0) > 0) edges.push(...othersOf(found, own.has(found.name)));
  }
  return edges.slice(0, MAX_EDGES);
}

const holdersOf = (found: TableRow | undefined): Pick<WaitEdge, 'holders' | 'holderCount'> => ({
  holders: found?.row.owners.slice(0, MAX_HOLDERS) ?? [],
  holderCount: found === undefined ? 0 : found.row.ownerCount,
});

function othersOf(found: TableRow, isOwn: boolean): WaitEdge[] {
  const { id, name, length, queue, waiters } = found.row;
  const unknown = { id, name, length, callSite: null, age: null, ...holdersOf(found) };
  const queued = queue
    .filter(({ isThisClient }) => !isThisClient)
    .map(({ owner, process }): WaitEdge => ({ ...unknown, waiter: 'queued', count: 1, owner, process }));
  // Of a queue, those that the row does not show. Elsewhere the client counts once, however many of its calls wait.
  const count = (waiters ?? 0) - (queue.length > 0 ? queue.length : isOwn ? 1 : 0);
  return count > 0 ? [...queued, { ...unknown, waiter: 'others', count, owner: null, process: null }] : queued;
}
