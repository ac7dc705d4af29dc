import type { Question, Report } from './messages.js';

/** A hold of an order, from the first acquire to the last release, as the events of its client tell. */
export interface HoldBar {
  readonly order: string;
  readonly worker: string;
  readonly owner: string;
  readonly from: number;
  /** It came straight from another flow of the same process. */
  readonly handedOff: boolean;
  holdCount: number;
  /** When more than one hold was open. */
  readonly nested: { readonly from: number; to?: number }[];
  readonly renewals: number[];
  /** Known once its code is inside: who that is, and when the lease ends as it believes. */
  flow?: string;
  until?: number;
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

/** What is worth a line of its own. */
export interface Mark {
  readonly kind: 'killed' | 'blocked' | 'lost' | 'taken over';
  readonly at: number;
  readonly order: string;
  readonly worker: string;
  readonly text: string;
}

export interface WorkerStatus {
  readonly name: string;
  readonly pid: number;
  readonly flows: readonly string[];
  state: 'working' | 'blocked' | 'killed' | 'done';
  sections: number;
  renewals: number;
  handOffs: number;
  /** Calls that did not get the lock at once and stood in line. */
  waited: number;
  losses: number;
  gaveUp: number;
  readonly blocks: { readonly from: number; to?: number }[];
  diedAt?: number;
}

/** What has happened so far, for whoever draws it. Times are those of `stamp()`. */
export class Timeline {
  readonly bars: HoldBar[] = [];
  readonly waits: Wait[] = [];
  readonly marks: Mark[] = [];
  readonly workers = new Map<string, WorkerStatus>();
  onMark: (mark: Mark) => void = () => undefined;
  readonly #holding = new Map<string, HoldBar>();
  readonly #byOwner = new Map<string, HoldBar>();
  /** By worker and flow. */
  readonly #waiting = new Map<string, Wait>();

  startedAt = 0;
  endsAt = 0;

  constructor(readonly orders: readonly string[]) {}

  begin(at: number, lastsMs: number): void {
    this.startedAt = at;
    this.endsAt = at + lastsMs;
  }

  add(name: string, pid: number, flows: readonly string[]): void {
    const counts = { sections: 0, renewals: 0, handOffs: 0, waited: 0, losses: 0, gaveUp: 0 };
    this.workers.set(name, { name, pid, flows, state: 'working', blocks: [], ...counts });
  }

  holderOf(order: string): HoldBar | undefined {
    return this.#holding.get(order);
  }

  get waiting(): Wait[] {
    return [...this.#waiting.values()];
  }

  /** When the flow that is inside now began to wait. */
  entered(worker: string, { order, flow, owner, at, until }: Extract<Question, { ask: 'enter' }>): number {
    this.#status(worker).sections += 1;
    const bar = this.#byOwner.get(owner);
    if (bar) Object.assign(bar, { flow, until });
    return this.#endWait(worker, flow, at)?.from ?? this.#waitOf(order, worker, flow, at).from;
  }

  blocked(worker: string, { order, at }: { order: string; at: number }): void {
    const status = this.#status(worker);
    status.state = 'blocked';
    status.blocks.push({ from: at });
    this.#mark({ kind: 'blocked', at, order, worker, text: `${worker} blocks its event loop while it holds ${order}` });
  }

  died(worker: string, at: number): void {
    const status = this.#status(worker);
    status.state = 'killed';
    status.diedAt = at;
    for (const bar of this.bars) {
      if (bar.worker !== worker || bar.to !== undefined) continue;
      bar.ended = 'killed';
      const { order, holdCount } = bar;
      const left = bar.until === undefined ? '' : `; its lease ends in ${seconds(bar.until - at)} s`;
      const text = `${worker} is killed (kill -9) while it holds ${order}, hold count ${holdCount}${left}`;
      this.#mark({ kind: 'killed', at, order, worker, text });
    }
    for (const wait of this.waiting) if (wait.worker === worker) this.#endWait(worker, wait.flow, at);
  }

  report(worker: string, report: Report): void {
    const status = this.#status(worker);
    switch (report.say) {
      case 'wants':
        this.#waiting.set(`${worker}/${report.flow}`, this.#waitOf(report.order, worker, report.flow, report.at));
        break;
      case 'gave up':
        status.gaveUp += 1;
        this.#endWait(worker, report.flow, report.at);
        break;
      case 'prolonged': {
        const bar = this.#byOwner.get(report.owner);
        if (bar) bar.until = report.until;
        break;
      }
      case 'unblocked':
        status.state = 'working';
        Object.assign(status.blocks.at(-1) ?? {}, { to: report.at });
        break;
      case 'done':
        status.state = 'done';
        break;
      case 'event':
        this.#event(status, report);
        break;
      default:
    }
  }

  #event(status: WorkerStatus, report: Extract<Report, { say: 'event' }>): void {
    const { order, at } = report;
    switch (report.event) {
      case 'waiting':
        status.waited += 1;
        break;
      case 'acquired':
        if (report.holdCount === 1) this.#acquired(status, order, at, report);
        else this.#byOwner.get(report.owner)?.nested.push({ from: at });
        this.#countOf(report.owner, report.holdCount);
        break;
      case 'released': {
        const bar = this.#countOf(report.owner, report.holdCount);
        if (bar && report.holdCount === 0) this.#ended(bar, 'released', at);
        else Object.assign(bar?.nested.at(-1) ?? {}, { to: at });
        break;
      }
      case 'renewed':
        status.renewals += 1;
        this.#byOwner.get(report.owner)?.renewals.push(at);
        break;
      case 'leaseLost': {
        status.losses += 1;
        const bar = this.#byOwner.get(report.owner);
        if (bar) this.#ended(bar, 'lost', at);
        const text = `${status.name} is told that it has lost ${order} (${report.reason})`;
        this.#mark({ kind: 'lost', at, order, worker: status.name, text });
      }
    }
  }

  #acquired(status: WorkerStatus, order: string, at: number, acquired: { owner: string; handedOff: boolean }): void {
    const { owner, handedOff } = acquired;
    const worker = status.name;
    if (handedOff) status.handOffs += 1;
    const before = this.#holding.get(order);
    const bar: HoldBar = { order, worker, owner, from: at, handedOff, holdCount: 1, nested: [], renewals: [] };
    this.bars.push(bar);
    this.#byOwner.set(owner, bar);
    this.#holding.set(order, bar);
    // An open bar is taken over if its lease has ended; else its end is only still on its way from its process.
    if (before?.to !== undefined || before?.until === undefined || before.until > at) return;
    if (before.ended === 'killed') before.to = at;
    const diedAt = this.#status(before.worker).diedAt ?? before.until;
    const since = before.ended === 'killed' ? `${seconds(at - diedAt)} s after the kill` : 'whose lease has ended';
    this.#mark({
      kind: 'taken over',
      at,
      order,
      worker,
      text: `${worker} takes ${order} over from ${before.worker}, ${since}`,
    });
  }

  #countOf(owner: string, holdCount: number): HoldBar | undefined {
    const bar = this.#byOwner.get(owner);
    if (bar) bar.holdCount = holdCount;
    return bar;
  }

  #ended(bar: HoldBar, ended: 'released' | 'lost', at: number): void {
    bar.ended = ended;
    bar.to = at;
    if (this.#holding.get(bar.order) === bar) this.#holding.delete(bar.order);
  }

  #waitOf(order: string, worker: string, flow: string, from: number): Wait {
    const wait = { order, worker, flow, from };
    this.waits.push(wait);
    return wait;
  }

  #endWait(worker: string, flow: string, at: number): Wait | undefined {
    const wait = this.#waiting.get(`${worker}/${flow}`);
    if (wait) wait.to = at;
    this.#waiting.delete(`${worker}/${flow}`);
    return wait;
  }

  #mark(mark: Mark): void {
    this.marks.push(mark);
    this.onMark(mark);
  }

  #status(worker: string): WorkerStatus {
    const status = this.workers.get(worker);
    if (!status) throw new Error(`no ${worker}`);
    return status;
  }
}

export const seconds = (ms: number): string => (ms / 1_000).toFixed(2);
