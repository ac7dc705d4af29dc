import type { Report } from './messages.js';

/** A hold of an order, from the first acquire to the last release, as the events of its client tell. */
export interface HoldBar {
  readonly order: string;
  readonly worker: string;
  flow: string | undefined;
  readonly owner: string;
  readonly from: number;
  /** It came straight from another flow of the same process. */
  readonly handedOff: boolean;
  holdCount: number;
  /** When more than one hold was open. */
  readonly nested: { readonly from: number; to?: number }[];
  readonly renewals: number[];
  /** The end of its lease, as it believed. */
  until: number;
  to?: number;
  ended?: 'released' | 'lost' | 'killed';
}

export interface Wait {
  readonly order: string;
  readonly worker: string;
  readonly flow: string;
  readonly from: number;
  to?: number;
}

export type Mark = { readonly at: number; readonly order: string; readonly worker: string; readonly text: string } & (
  { readonly kind: 'killed' | 'blocked' | 'lost' } | { readonly kind: 'taken over'; readonly after: number }
);

export interface WorkerStatus {
  readonly name: string;
  readonly pid: number;
  readonly flows: readonly string[];
  state: 'working' | 'blocked' | 'killed' | 'done';
  sections: number;
  renewals: number;
  handOffs: number;
  parked: number;
  losses: number;
  readonly blocks: { readonly from: number; to?: number }[];
  diedAt?: number;
}

/** What has happened so far, for whoever draws it. Times are those of `stamp()`. */
export class Timeline {
  readonly bars: HoldBar[] = [];
  readonly waits: Wait[] = [];
  readonly marks: Mark[] = [];
  readonly workers = new Map<string, WorkerStatus>();
  /** The bar that is drawn in an order's lane now. */
  readonly #holding = new Map<string, HoldBar>();
  readonly #byOwner = new Map<string, HoldBar>();
  readonly #waiting = new Map<string, Wait>();
  onMark: (mark: Mark) => void = () => undefined;

  constructor(
    readonly orders: readonly string[],
    readonly startedAt: number,
    readonly endsAt: number,
  ) {}

  add(name: string, pid: number, flows: readonly string[]): void {
    const counts = { sections: 0, renewals: 0, handOffs: 0, parked: 0, losses: 0 };
    this.workers.set(name, { name, pid, flows, state: 'working', blocks: [], ...counts });
  }

  holderOf(order: string): HoldBar | undefined {
    return this.#holding.get(order);
  }

  waitersOf(order: string): Wait[] {
    return [...this.#waiting.values()].filter((wait) => wait.order === order);
  }

  waits_(worker: string): number {
    return [...this.#waiting.values()].filter((wait) => wait.worker === worker).length;
  }
}
