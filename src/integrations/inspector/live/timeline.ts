import type { ListedOwner, LockEvents } from '../../../index.js';
import { changesBetween, type Change } from '../../shared/changes.js';
import type { ProcessView, TimelineBar, TimelineChange, TimelineEntry } from '../contract/messages.js';
import { cut, cutLabel } from './named.js';
import type { Entry } from './overview.js';
import { isWhole, type ProcessOf } from './table.js';

const MAX_BARS = 100;
const MAX_ENTRIES = 200;
const MAX_RENEWALS = 50;

type Writable<T> = { -readonly [K in keyof T]: T[K] };
type Bar = Writable<TimelineBar> & { revision: number };
type End = NonNullable<TimelineBar['ended']>;

/** The events of the client that a timeline shows. All of them name a lock. */
export const EVENTS = [
  'acquired',
  'notAcquired',
  'released',
  'waiting',
  'renewed',
  'renewFailed',
  'leaseLost',
  'permitsAcquired',
  'permitsReleased',
  'latchPassed',
  'latchCountedDown',
  'forceUnlocked',
] as const satisfies (keyof LockEvents)[];

/**
 * What happened to one name: at the moment in which it happens for the holds of this client, and between two looks for
 * all others.
 */
export class Timeline {
  readonly #bars = new Map<number, Bar>();
  readonly #entries: TimelineEntry[] = [];
  #last: { readonly entry: Entry; readonly at: number } | undefined;
  #ids = 0;
  /** Changes with every change of a bar. */
  #revision = 0;

  constructor(
    private readonly own: { readonly clientId: string; readonly process: ProcessView },
    private readonly processOf: ProcessOf,
  ) {}

  /** Notes what was read at a moment, in ms of `performance.now()`. */
  look(entry: Entry, at: number): void {
    const last = this.#last;
    this.#last = { entry, at };
    if (last !== undefined && at <= last.at) return;
    if (last === undefined || !isWhole(last.entry) || !isWhole(entry)) {
      // Of too many owners only some were read: who is missing among them may still have the lock.
      for (const owner of entry.owners) this.#open(owner, false);
      if (last !== undefined) this.#comparePart(last.entry, entry, at - last.at);
      return;
    }
    for (const change of changesBetween(last.entry, entry, at - last.at)) this.#seen(change);
  }

  #comparePart(before: Entry, after: Entry, elapsedMs: number): void {
    for (const change of changesBetween({ ...before, owners: [] }, { ...after, owners: [] }, elapsedMs)) {
      this.#seen(change);
    }
    if (!isWhole(after)) return;
    const has = new Set(after.owners.map(({ owner }) => owner));
    for (const { owner, to, isThisClient } of this.#bars.values()) {
      if (to === null && !isThisClient && !has.has(owner)) this.#end(owner, 'released');
    }
  }

  /** What a page lacks that has everything up to `cursor`, and the new cursor. */
  since(cursor: TimelineCursor | undefined): { readonly change: TimelineChange; readonly cursor: TimelineCursor } {
    const { revision = -1, id = -1 } = cursor ?? {};
    const bars = [...this.#bars.values()].filter((bar) => bar.revision > revision);
    const change: TimelineChange = {
      bars: bars.map(({ revision: _, ...bar }) => bar),
      entries: this.#entries.filter((entry) => entry.id > id),
    };
    return { change, cursor: { revision: this.#revision, id: this.#ids } };
  }

  /** An event of the client about this name. */
  heard<Type extends (typeof EVENTS)[number]>(type: Type, given: LockEvents[Type]): void {
    const told = { type, ...given } as Told;
    switch (told.type) {
      case 'acquired': {
        const bar = this.#openBar(told.owner);
        if (bar === undefined) this.#open(this.#ownOwner(told), true, told.handedOff);
        else this.#update(bar, { holdCount: told.holdCount });
        this.#add('acquired', `${told.owner}${countText(told)}, after ${ms(told.waited)}`);
        break;
      }
      case 'released':
        if (told.holdCount === 0) this.#end(told.owner, 'released');
        else this.#updateOwner(told.owner, { holdCount: told.holdCount });
        this.#add('released', `${told.owner}${countText(told)}, held for ${ms(told.held)}`);
        break;
      case 'leaseLost':
        this.#end(told.owner, 'lost');
        this.#add('lost', `${told.owner}: ${told.reason}, held for ${ms(told.held)}`);
        break;
      case 'renewed': {
        const bar = this.#openBar(told.owner);
        if (bar !== undefined) this.#update(bar, { renewals: [...bar.renewals, Date.now()].slice(-MAX_RENEWALS) });
        break;
      }
      case 'renewFailed':
        this.#add('renewal failed', `${told.owner}: ${messageOf(told.cause)}`);
        break;
      case 'waiting':
        this.#add('waiting', `${told.waiters} ${told.waiters === 1 ? 'call waits' : 'calls wait'} in this process`);
        break;
      case 'notAcquired':
        this.#add('gave up', `${told.outcome} after ${ms(told.waited)}`);
        break;
      case 'permitsAcquired':
        this.#add('acquired', `${told.permits} permits, after ${ms(told.waited)}`);
        break;
      case 'permitsReleased':
        this.#add('released', `${told.permits} permits`);
        break;
      case 'latchPassed':
        this.#add('acquired', `passed the latch after ${ms(told.waited)}`);
        break;
      case 'latchCountedDown':
        this.#add('value', 'counted down by this process');
        break;
      case 'forceUnlocked':
        if (told.result === 'freed') this.#end(told.owner, 'freed');
        this.#add('freed', `${told.owner} by ${told.by ?? 'an unnamed user'}: ${told.result}`);
        break;
    }
  }

  /** This client's events tell of its own owners, so that the looks do not tell of them again. */
  #seen(change: Change): void {
    switch (change.what) {
      case 'handed over':
        if (change.from.isThisClient && change.to.isThisClient) return;
        if (!change.from.isThisClient) this.#end(change.from.owner, 'handed over');
        if (!change.to.isThisClient) this.#open(change.to, true, true);
        this.#add('handed over', `${this.#nameOf(change.from)} -> ${this.#nameOf(change.to)}`, 'seen');
        return;
      case 'acquired':
        if (change.owner.isThisClient) return;
        this.#open(change.owner, true);
        break;
      case 'released':
      case 'expired':
        if (change.owner.isThisClient || this.#openBar(change.owner.owner) === undefined) return;
        this.#end(change.owner.owner, change.what);
        break;
      case 'hold count':
        if (change.owner.isThisClient) return;
        this.#updateOwner(change.owner.owner, { holdCount: change.owner.holdCount });
        this.#add(change.what, `${change.from} -> ${change.owner.holdCount} of ${this.#nameOf(change.owner)}`, 'seen');
        return;
      case 'waiters':
      case 'value':
        this.#add(change.what, `${change.from ?? 'none'} -> ${change.to ?? 'none'}`, 'seen');
        return;
    }
    this.#add(change.what, this.#nameOf(change.owner), 'seen');
  }

  #open(listed: Omit<ListedOwner, 'process'>, isFromStart: boolean, handedOver = false): void {
    const { owner, mode, isThisClient, holdCount } = listed;
    if (this.#openBar(owner) !== undefined) return;
    const process = isThisClient ? this.own.process : this.processOf(owner);
    const id = (this.#ids += 1);
    const known = {
      id,
      owner: cutLabel(owner),
      mode,
      isThisClient,
      process,
      from: Date.now(),
      isFromStart,
      handedOver,
    };
    this.#bars.set(id, { ...known, holdCount, to: null, ended: null, renewals: [], revision: (this.#revision += 1) });
    if (this.#bars.size > MAX_BARS) this.#bars.delete(oldest(this.#bars));
  }

  #openBar(owner: string): Bar | undefined {
    for (const bar of this.#bars.values()) if (bar.owner === owner && bar.to === null) return bar;
    return undefined;
  }

  #update(bar: Bar, change: Partial<Bar>): void {
    Object.assign(bar, change, { revision: (this.#revision += 1) });
  }

  #updateOwner(owner: string, change: Partial<Bar>): void {
    const bar = this.#openBar(owner);
    if (bar !== undefined) this.#update(bar, change);
  }

  #end(owner: string, ended: End): void {
    this.#updateOwner(owner, { to: Date.now(), ended });
  }

  #add(what: TimelineEntry['what'], text: string, source: TimelineEntry['source'] = 'client'): void {
    this.#entries.push({ id: (this.#ids += 1), at: Date.now(), what, text: cut(text), source });
    if (this.#entries.length > MAX_ENTRIES) this.#entries.shift();
  }

  #ownOwner({ owner, holdCount, kind, mode }: LockEvents['acquired']): Omit<ListedOwner, 'process'> {
    const side = mode === 'shared' ? 'read' : kind === 'read-write' ? 'write' : 'exclusive';
    return { owner, holdCount, mode: side, isThisClient: true };
  }

  #nameOf({ owner, isThisClient }: { owner: string; isThisClient: boolean }): string {
    const process = isThisClient ? this.own.process : this.processOf(owner);
    return process === null ? owner : `${process.clientName} ${process.host}:${process.pid} ${owner}`.trim();
  }
}

type Told = { [Type in (typeof EVENTS)[number]]: { readonly type: Type } & LockEvents[Type] }[(typeof EVENTS)[number]];

/** What a page has of a timeline. */
export interface TimelineCursor {
  readonly revision: number;
  readonly id: number;
}

const oldest = (bars: ReadonlyMap<number, Bar>): number => {
  for (const { id, to } of bars.values()) if (to !== null) return id;
  return bars.keys().next().value as number;
};

const ms = (time: number): string => `${Math.round(time)} ms`;
const countText = ({ holdCount }: { holdCount: number }): string => (holdCount > 1 ? `, ${holdCount} holds` : '');
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
