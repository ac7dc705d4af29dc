import type { EventOf } from '../../support/history/history-events.js';
import type { MonitorLine } from '../../support/servers/monitor-log.js';

/** The owner of a lock at one server, and the end of its lease by the local clock. */
export interface Entry {
  readonly owner: string;
  readonly expiresAt: number;
}

/** A hold at a server, with its begin and end. */
export type Ended = (held: Omit<EventOf<'held'>, 'type' | 'process'>) => void;

/** Servers count whole ms of the epoch. All times here are by the local clock. */
export const wholeMsLater = (at: number, ms: number, wallAhead: number): number =>
  Math.floor(at + wallAhead) - wallAhead + ms;

/** The end of a lease after a PEXPIRE with these arguments behind the key. With GT, it never comes earlier. */
export function afterPexpire(before: number, [ms, option]: readonly string[], at: number, wallAhead: number): number {
  const ends = wholeMsLater(at, Number(ms), wallAhead);
  return option === 'GT' ? Math.max(before, ends) : ends;
}

/** The state of the locks at one server, by its own MONITOR: its own commands and those from its master. */
export class ServerView {
  readonly #entries = new Map<string, Entry>();

  constructor(private readonly wallAhead: number) {}

  /** Also if its lease has ended. */
  entry(lock: string): Entry | undefined {
    return this.#entries.get(lock);
  }

  set(lock: string, entry: Entry | undefined): void {
    if (entry) this.#entries.set(lock, entry);
    else this.#entries.delete(lock);
  }

  copy(other: ServerView): void {
    this.#entries.clear();
    for (const [lock, entry] of other.#entries) this.#entries.set(lock, entry);
  }

  apply(at: number, command: string, [lock = '', ...rest]: MonitorLine['args']): void {
    const before = this.#entries.get(lock);
    const live = before && before.expiresAt >= at ? before : undefined;
    switch (command) {
      case 'HSET':
        return this.set(lock, { owner: rest[0] ?? '', expiresAt: live?.expiresAt ?? Infinity });
      case 'PEXPIRE':
        return live && this.set(lock, { ...live, expiresAt: afterPexpire(live.expiresAt, rest, at, this.wallAhead) });
      case 'PEXPIREAT':
        return live && this.set(lock, { ...live, expiresAt: Number(rest[0]) - this.wallAhead });
      case 'HDEL':
        return before && rest.includes(before.owner) ? this.set(lock, undefined) : undefined;
      case 'DEL':
      case 'UNLINK':
        return this.set(lock, undefined);
    }
  }
}
