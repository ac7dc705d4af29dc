import type { Confirmed } from '../../support/history/history-events.js';
import { wholeMsLater, type Ended } from './server-view.js';

interface Part {
  /** Of a writer: the leases of the lock's own key. Of a reader: those of its holds. */
  readonly confirmed: Confirmed[];
  readonly from: number;
  /** Of a reader: when each of its holds ends, by the number of the hold. */
  readonly ends: Map<string, number>;
}

const HOLD = /^\{?(.+?)\}?:([^:]+:\d+):rwlock_timeout:(\d+)$/;

/**
 * The owners of the halves of read-write locks at one server, by the writes of the scripts. A writer has its half as
 * long as its field and the key of the lock exist. A reader also needs the key of one of its holds.
 */
export class ReadWriteTruth {
  readonly #writers = new Map<string, Map<string, Part>>();
  readonly #readers = new Map<string, Map<string, Part>>();
  /** When the lock's own key ends. */
  readonly #expiresAt = new Map<string, number>();

  constructor(
    private readonly wallAhead: number,
    private readonly ended: Ended,
  ) {}

  /** The lock that a key belongs to. */
  static lockOf(key: string): string {
    return HOLD.exec(key)?.[1] ?? key;
  }

  /** `handedOn`: by the script that puts the next writer in before it takes the last one out. */
  apply(at: number, command: string, [key = '', ...rest]: readonly string[], handedOn: boolean): void {
    const [, lock = key, owner, number = ''] = HOLD.exec(key) ?? [];
    this.#expire(lock, at);
    if (owner === undefined) {
      if (handedOn && command === 'HSET')
        for (const writer of [...(this.#writers.get(lock)?.keys() ?? [])]) this.#writes(lock, writer, at);
      return this.#applyToLock(at, command, lock, rest);
    }
    const reader = this.#readers.get(lock)?.get(owner);
    if (command === 'SET') {
      const part = reader ?? { from: at, ends: new Map<string, number>(), confirmed: [] };
      leased(part, number, at, wholeMsLater(at, Number(rest[2]), this.wallAhead));
      if (!reader) entriesOf(this.#readers, lock).set(owner, part);
    } else if (command === 'PEXPIRE') {
      if (reader?.ends.has(number)) leased(reader, number, at, wholeMsLater(at, Number(rest[0]), this.wallAhead));
    } else if (command === 'DEL' && reader) {
      reader.ends.delete(number);
      // The other holds may have expired long ago: this hold kept the reader inside until now.
      if (Math.max(...reader.ends.values()) < at) this.#reads(lock, owner, at);
    }
  }

  end(at: number): void {
    for (const lock of [...this.#writers.keys(), ...this.#readers.keys()]) this.#all(lock, at);
  }

  #applyToLock(at: number, command: string, lock: string, args: readonly string[]): void {
    switch (command) {
      case 'HSET': {
        if (!this.#expiresAt.has(lock)) this.#expiresAt.set(lock, Infinity);
        const writer = args.find((field) => field.endsWith(':write'))?.slice(0, -':write'.length);
        const writers = entriesOf(this.#writers, lock);
        if (writer !== undefined && !writers.has(writer))
          writers.set(writer, { from: at, ends: new Map(), confirmed: [] });
        return;
      }
      case 'PEXPIRE':
        if (this.#expiresAt.has(lock)) this.#leased(lock, at, wholeMsLater(at, Number(args[0]), this.wallAhead));
        return;
      case 'HDEL':
        for (const field of args) {
          if (field.endsWith(':write')) this.#writes(lock, field.slice(0, -':write'.length), at);
          else this.#reads(lock, field, at);
        }
        return;
      case 'DEL':
        this.#all(lock, at);
    }
  }

  #leased(lock: string, at: number, until: number): void {
    this.#expiresAt.set(lock, until);
    for (const { confirmed } of this.#writers.get(lock)?.values() ?? []) confirmed.push({ at, until });
  }

  /** Ends holds that have expired by then. */
  #expire(lock: string, at: number): void {
    const expiresAt = this.#expiresAt.get(lock) ?? Infinity;
    for (const [owner, { ends }] of [...(this.#readers.get(lock) ?? [])]) {
      const last = Math.max(...ends.values());
      if (last < Math.min(at, expiresAt)) this.#reads(lock, owner, last);
    }
    if (expiresAt < at) this.#all(lock, expiresAt);
  }

  #all(lock: string, at: number): void {
    // None outlasts its own end.
    if ((this.#expiresAt.get(lock) ?? Infinity) > at) this.#expire(lock, at);
    for (const owner of [...(this.#writers.get(lock)?.keys() ?? [])]) this.#writes(lock, owner, at);
    for (const [owner, { ends }] of [...(this.#readers.get(lock) ?? [])])
      this.#reads(lock, owner, Math.min(at, Math.max(...ends.values())));
    this.#expiresAt.delete(lock);
  }

  #writes(lock: string, owner: string, at: number): void {
    this.#over(this.#writers, lock, owner, at, 'write');
  }

  #reads(lock: string, owner: string, at: number): void {
    this.#over(this.#readers, lock, owner, at, 'read');
  }

  #over(among: Map<string, Map<string, Part>>, lock: string, owner: string, at: number, half: 'read' | 'write'): void {
    const part = among.get(lock)?.get(owner);
    if (part === undefined) return;
    among.get(lock)?.delete(owner);
    const { from, confirmed } = part;
    this.ended({ lock, owner, from, at, half, confirmed });
  }
}

function leased({ ends, confirmed }: Part, hold: string, at: number, until: number): void {
  ends.set(hold, until);
  confirmed.push({ at, until });
}

function entriesOf(all: Map<string, Map<string, Part>>, lock: string): Map<string, Part> {
  const found = all.get(lock) ?? new Map<string, Part>();
  all.set(lock, found);
  return found;
}
