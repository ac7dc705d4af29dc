import type { Question } from './messages.js';

/** One stay of a flow inside an order's lock, by the account of its own code. */
export interface Section {
  readonly order: string;
  readonly worker: string;
  readonly flow: string;
  readonly owner: string;
  /** When it began to wait, and when it was inside. */
  readonly wanted: number;
  readonly from: number;
  /** The end of its lease, as the hold itself believed. */
  until: number;
  /** It did nothing to the order after this. */
  left?: number;
  unlocked?: number;
  unlockCode?: string;
  diedAt?: number;
  /** How often its signal has aborted, and how often the event has told of it. */
  signals: number;
  losses: number;
}

export interface Overlap {
  readonly first: Section;
  readonly second: Section;
}

/**
 * What the locks protect in the demo, kept by the parent: one plain number per order, which a worker reads, thinks
 * about and writes back, and the list of who is inside. Nothing here excludes anybody.
 */
export class Register {
  readonly sections: Section[] = [];
  readonly #byOwner = new Map<string, Section>();
  readonly #orders = new Map<string, { value: number; writes: number }>();

  enter(worker: string, wanted: number, place: Extract<Question, { ask: 'enter' }>): void {
    const { order, flow, owner, at, until } = place;
    const section: Section = { order, worker, flow, owner, wanted, from: at, until, signals: 0, losses: 0 };
    this.sections.push(section);
    this.#byOwner.set(owner, section);
  }

  of(owner: string): Section | undefined {
    return this.#byOwner.get(owner);
  }

  inside(order: string): Section[] {
    return this.sections.filter((each) => each.order === order && each.left === undefined && each.diedAt === undefined);
  }

  died(worker: string, at: number): void {
    for (const section of this.sections) {
      if (section.worker === worker && section.left === undefined) section.diedAt = at;
    }
  }

  read(order: string): number {
    return this.#counter(order).value;
  }

  write(order: string, value: number): void {
    const counter = this.#counter(order);
    counter.writes += 1;
    counter.value = value;
  }

  /** Updates that were written, and those that are still there: an update that another one overwrote is missing. */
  updates(): { written: number; kept: number } {
    const counters = [...this.#orders.values()];
    return {
      written: counters.reduce((sum, { writes }) => sum + writes, 0),
      kept: counters.reduce((sum, { value }) => sum + value, 0),
    };
  }

  /** In the order of their entry. */
  sectionsOf(order: string): Section[] {
    return this.sections.filter((each) => each.order === order).sort((a, b) => a.from - b.from);
  }

  get orders(): string[] {
    return [...new Set(this.sections.map(({ order }) => order))].sort();
  }

  /** Two inside one order at once, each of them while its own lease lasted. */
  overlaps(): Overlap[] {
    return this.orders.flatMap((order) => {
      const sections = this.sectionsOf(order);
      return sections.flatMap((second, at) =>
        sections.slice(0, at).flatMap((first) => (second.from < validUntil(first) ? [{ first, second }] : [])),
      );
    });
  }

  #counter(order: string): { value: number; writes: number } {
    let counter = this.#orders.get(order);
    if (!counter) this.#orders.set(order, (counter = { value: 0, writes: 0 }));
    return counter;
  }
}

/** The lock of a process that died is nobody else's before its lease has ended. */
const validUntil = ({ left = Infinity, until }: Section): number => Math.min(left, until);
