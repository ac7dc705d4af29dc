import type { Contended, Named } from '../contract/messages.js';
import { idOf, namedOf } from './named.js';
import type { Table, TableRow } from './table.js';

const MOST = 10;
/** Number of names whose waits are kept. The least waited for is dropped first. */
const MAX_NAMES = 1_000;
/** A call that took less time, in ms, hardly waited. */
const OWN_WAIT_MS = 10;

interface Waits {
  readonly named: Named;
  mostWaiters: number;
  waitedForMs: number;
  /** The last look that found a waiting client, in ms of `performance.now()`. */
  waitedAt: number | undefined;
  count: number;
  longestMs: number;
  totalMs: number;
}

/** Which names are waited for, and for how long. */
export class Contention {
  /** By the ids of the names. */
  readonly #waits = new Map<string, Waits>();

  /** Notes a new look at a name. */
  look(name: string, waiters: number, at: number): void {
    const waits = waiters > 0 ? this.#of(name) : this.#waits.get(idOf(name));
    if (waits === undefined) return;
    waits.mostWaiters = Math.max(waits.mostWaiters, waiters);
    if (waits.waitedAt !== undefined) waits.waitedForMs += Math.max(0, at - waits.waitedAt);
    waits.waitedAt = waiters > 0 ? at : undefined;
  }

  /** A call of the client has ended. */
  ended(name: string, waitedMs: number): void {
    if (waitedMs < OWN_WAIT_MS) return;
    const waits = this.#of(name);
    waits.count += 1;
    waits.longestMs = Math.max(waits.longestMs, waitedMs);
    waits.totalMs += waitedMs;
  }

  most(table: Table): Contended[] {
    const listed = [...this.#waits.values()].map((waits) => contendedOf(waits, table.byId(waits.named.id)));
    return listed.sort(byWaiting).slice(0, MOST);
  }

  #of(name: string): Waits {
    const id = idOf(name);
    let waits = this.#waits.get(id);
    if (waits === undefined) {
      if (this.#waits.size >= MAX_NAMES) this.#dropLeast();
      const none = { mostWaiters: 0, waitedForMs: 0, waitedAt: undefined, count: 0, longestMs: 0, totalMs: 0 };
      waits = { named: namedOf(name), ...none };
      this.#waits.set(id, waits);
    }
    return waits;
  }

  #dropLeast(): void {
    let [least, ms] = ['', Infinity];
    for (const [id, { waitedForMs, totalMs }] of this.#waits) {
      if (waitedForMs + totalMs < ms) [least, ms] = [id, waitedForMs + totalMs];
    }
    this.#waits.delete(least);
  }
}

function contendedOf(waits: Waits, now: TableRow | undefined): Contended {
  const { named, mostWaiters, waitedForMs, count, longestMs, totalMs } = waits;
  return {
    ...named,
    kind: now?.row.kind ?? 'free',
    waiters: now === undefined ? 0 : now.row.waiters,
    mostWaiters,
    waitedForMs: Math.round(waitedForMs),
    own: { count, longestMs: Math.round(longestMs), totalMs: Math.round(totalMs) },
  };
}

const byWaiting = (a: Contended, b: Contended): number =>
  (b.waiters ?? 0) - (a.waiters ?? 0) ||
  b.waitedForMs + b.own.totalMs - (a.waitedForMs + a.own.totalMs) ||
  (a.name < b.name ? -1 : 1);
