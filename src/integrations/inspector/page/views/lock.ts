import type { Named, OwnerView, QueuedView, Row, TimelineEntry } from '../../messages.js';
import { byId, element, named, nameNode, setText } from '../parts/dom.js';
import { KIND_NAMES, visible } from '../../../shared/inspection-words.js';
import { counted, elapsed, timeOfDay } from '../parts/format.js';
import { KeyedList, type Item } from '../parts/keyed-list.js';
import { LeaseBar } from '../parts/lease.js';
import type { Model, Read } from '../parts/model.js';
import { holdTags, moreOwners, ownersKey, processNode } from '../parts/owners.js';
import type { Selection } from '../parts/route.js';
import { isSemaphore } from './locks.js';
import { PermitList } from './permits.js';
import { Timeline } from './timeline.js';

const MAX_ENTRIES = 60;
const MAX_PERMITS = 50;

/** One lock: its lease, its owners, its queue, and what happened to it. */
export class LockView {
  readonly #title = byId('title-lock');
  readonly #kind = element('p', { class: 'kind' });
  readonly #lease = new LeaseBar();
  readonly #permits = new PermitList(MAX_PERMITS);
  readonly #owners = element('ul', { class: 'owners-list' });
  readonly #moreOwners = element('p', { class: 'aside' });
  readonly #waiting = element('p');
  readonly #queue = element('ol', { class: 'queue' });
  readonly #entries = element('ol', { class: 'log', tabindex: '0', 'aria-label': 'What happened' });
  readonly #timeline: Timeline;
  readonly #ownerList: KeyedList<OwnerView>;
  readonly #queueList: KeyedList<QueuedView>;
  readonly #entryList: KeyedList<TimelineEntry>;
  readonly #parts: Readonly<Record<'owners' | 'permits' | 'waiting' | 'entries', HTMLElement>>;
  #selection: Selection | undefined;
  #row: Row | undefined;

  constructor(
    private readonly model: Model,
    private readonly askToFree: (lock: Named, owner: OwnerView) => void,
  ) {
    this.#timeline = new Timeline(model);
    this.#ownerList = new KeyedList(
      this.#owners,
      ({ owner }) => owner,
      (owner) => this.#owner(owner),
    );
    this.#queueList = new KeyedList(this.#queue, ({ owner }) => owner, queued);
    this.#entryList = new KeyedList(this.#entries, ({ id }) => String(id), entry);
    const part = (title: string, ...nodes: HTMLElement[]): HTMLElement =>
      element('div', { class: 'part' }, element('h3', {}, title), ...nodes);
    this.#parts = {
      owners: part('Held by', this.#owners, this.#moreOwners),
      permits: part('Taken permits', this.#permits.node),
      waiting: part('Waiting', this.#waiting, this.#queue),
      entries: part('What happened', this.#entries),
    };
    const { owners, permits, waiting, entries } = this.#parts;
    const timeline = part('Timeline', this.#timeline.node);
    byId('lock').append(this.#kind, this.#lease.node, owners, permits, waiting, timeline, entries);
  }

  /** Shows another lock, of which nothing is known yet. */
  select(selection: Selection | undefined): void {
    if (selection?.by === this.#selection?.by && selection?.value === this.#selection?.value) return;
    this.#selection = selection;
    this.#row = undefined;
    this.#timeline.forget();
    if (selection !== undefined) this.#title.replaceChildren(named(selection.value));
    setText(this.#kind, 'Loading');
    for (const part of Object.values(this.#parts)) part.hidden = true;
  }

  focus(): void {
    this.#title.focus({ preventScroll: false });
  }

  render(): void {
    const { selected } = this.model;
    if (selected === undefined || selected.value.asked !== this.#selection?.value) return;
    const { row } = selected.value;
    if (row.name !== '' && row.id !== this.#row?.id) this.#title.replaceChildren(nameNode(row));
    this.#row = row;
    const { owners, permits, waiting, entries } = this.#parts;
    setText(this.#kind, row.kind === 'free' ? 'Nothing is locked under this name.' : KIND_NAMES[row.kind]);
    this.#lease.node.hidden = row.kind === 'free' || isSemaphore(row);
    this.#lease.show(row.remaining, selected.at, row.lease);
    owners.hidden = row.owners.length === 0;
    this.#ownerList.show(row.owners);
    setText(this.#moreOwners, moreOwners(row.owners.length, row.ownerCount));
    permits.hidden = !isSemaphore(row);
    this.#showPermits(row, selected);
    waiting.hidden = row.waiters === 0 && row.queue.length === 0;
    setText(
      this.#waiting,
      row.waiters === null ? 'Redis does not tell how many wait.' : counted(row.waiters, 'client'),
    );
    this.#queueList.show(row.queue);
    entries.hidden = this.model.entries.length === 0;
    this.#entryList.show(this.model.entries.slice(-MAX_ENTRIES).reverse());
    this.tick();
  }

  tick(): void {
    this.#lease.tick();
    this.#permits.tick();
    this.#timeline.draw();
    for (const node of this.#owners.querySelectorAll<HTMLElement>('[data-since]')) {
      setText(node, `for at least ${elapsed(this.model.serverNow() - Number(node.dataset['since']))}`);
    }
  }

  #showPermits(row: Row, { at }: Read<unknown>): void {
    this.#permits.show(row.permits, row.permitCount, at);
    if (!isSemaphore(row)) return;
    const value =
      row.kind === 'permits' ? `${row.value ?? 0} free, ${row.permitCount} taken` : `stands at ${row.value ?? 0}`;
    setText(this.#kind, `${KIND_NAMES[row.kind]}: ${value}`);
    this.#parts.permits.hidden = row.permitCount === 0;
  }

  #owner({ owner, since }: OwnerView): Item<OwnerView> {
    const head = element('span', { class: 'line' });
    const known = element('p');
    const time = element('span', { class: 'at', 'data-since': String(since) });
    const free = element('button', { type: 'button', class: 'danger quiet' }, 'Free this lock…');
    let latest: OwnerView | undefined;
    free.addEventListener('click', () => {
      if (latest !== undefined && this.#row !== undefined) this.askToFree(this.#row, latest);
    });
    const node = element('li', {}, head, known, element('span', { class: 'line' }, time, free));
    let shown = '';
    const update = (next: OwnerView): void => {
      latest = next;
      free.hidden = this.model.hello?.actions !== true;
      // The process of an owner may become known later than the owner.
      const key = ownersKey([next]);
      if (key === shown) return;
      shown = key;
      const { process, isThisClient } = next;
      head.replaceChildren(processNode(process, owner, isThisClient), ...holdTags(next));
      known.replaceChildren(...(process === null ? [] : [named(`${process.address} · ${owner}`, 'owner')]));
      free.setAttribute('aria-label', `Free this lock of ${visible(process?.clientName || owner)}`);
    };
    return { node, update };
  }
}

function queued(): Item<QueuedView> {
  const node = element('li');
  let shown = '';
  const update = ({ process, owner, isThisClient }: QueuedView): void => {
    const key = JSON.stringify(process);
    if (key !== shown) node.replaceChildren(processNode(process, owner, isThisClient));
    shown = key;
  };
  return { node, update };
}

/** Client ids with eight digits, as the command `holdfast` shows them. */
const shortened = (text: string): string =>
  text.replace(/\b([\da-f]{8})(?:-[\da-f]{4}){3}-[\da-f]{12}(?=:\d)/g, '$1').replaceAll(' -> ', ' → ');

function entry({ at, what, text, source }: TimelineEntry): Item<TimelineEntry> {
  const time = element('time', {}, timeOfDay(at));
  const words = element(
    'span',
    { class: 'words' },
    element('span', { class: 'what' }, what),
    ' ',
    named(shortened(text), 'text'),
  );
  const node = element('li', { class: `entry ${what.replace(' ', '-')}` }, time, words);
  if (source === 'seen') node.append(element('span', { class: 'at' }, 'seen'));
  return { node, update: () => undefined };
}
