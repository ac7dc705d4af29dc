import type { Row } from '../../messages.js';
import { byId, element, nameNode, setText, within } from '../parts/dom.js';
import { KIND_NAMES } from '../../../shared/inspection-words.js';
import { count, counted } from '../parts/format.js';
import { cells, KeyedList, type Item } from '../parts/keyed-list.js';
import { LeaseBar } from '../parts/lease.js';
import { restOf, type Model, type Read } from '../parts/model.js';
import { ownersKey, ownersNode } from '../parts/owners.js';
import { linkTo, selectionOf } from '../parts/route.js';

const MAX_OWNERS = 3;
/** The largest number of rows that the server sends. */
const MAX_ROWS = 1_000;
/** How many rows the first stream and each click ask for. */
export const ROWS = 200;

type SortKey = 'name' | 'lease' | 'waiters';
type Compare = (a: Read<Row>, b: Read<Row>) => number;

const byName: Compare = ({ value: a }, { value: b }) =>
  a.name < b.name ? -1 : a.name > b.name ? 1 : a.id < b.id ? -1 : 1;
/** No end comes after every end. */
const restFor = ({ value, at }: Read<Row>): number => (value.remaining === -1 ? Infinity : restOf(value.remaining, at));
const ORDERS: Readonly<Record<SortKey, { readonly compare: Compare; readonly direction: 'ascending' | 'descending' }>> =
  {
    name: { compare: byName, direction: 'ascending' },
    lease: { compare: (a, b) => restFor(a) - restFor(b) || byName(a, b), direction: 'ascending' },
    waiters: {
      compare: (a, b) => (b.value.waiters ?? -1) - (a.value.waiters ?? -1) || byName(a, b),
      direction: 'descending',
    },
  };

/** A row of the table. A row that is out of sight draws its changes when it comes into sight. */
interface DrawnRow {
  readonly lease: LeaseBar;
  draw(): void;
}

export const isSemaphore = ({ kind }: Row): boolean => kind === 'counter' || kind === 'permits';

/** The table of locks. */
export class LocksView {
  readonly #table = byId('locks', HTMLTableElement);
  readonly #body = within(this.#table, 'tbody');
  readonly #more = byId('more', HTMLButtonElement);
  readonly #rows = new Map<Element, DrawnRow>();
  readonly #inSight = new Set<DrawnRow>();
  readonly #list: KeyedList<Read<Row>>;
  readonly #observer: IntersectionObserver;
  #sort: SortKey = 'waiters';
  #order: string[] = [];

  constructor(
    private readonly model: Model,
    private readonly askForRows: (rows: number) => void,
  ) {
    this.#observer = new IntersectionObserver((entries) => this.#onSight(entries), { rootMargin: '300px 0px' });
    this.#list = new KeyedList(
      this.#body,
      ({ value }) => value.id,
      () => this.#row(),
    );
    for (const head of this.#table.querySelectorAll<HTMLElement>('th[data-sort]')) {
      head.addEventListener('click', () => this.#sortBy(head.dataset['sort'] as SortKey));
    }
    this.#more.addEventListener('click', () => this.askForRows(Math.min(MAX_ROWS, this.#asked() + ROWS)));
    this.#showSort();
  }

  render(): void {
    const { summary } = this.model;
    const rows = this.#inOrder([...this.model.rows.values()].filter(({ value }) => !isSemaphore(value)));
    const focusedAt = [...this.#body.children].findIndex((row) => row.contains(document.activeElement));
    this.#list.show(rows);
    this.#forgetRemoved();
    if (focusedAt >= 0 && !this.#body.contains(document.activeElement)) this.#focusRow(focusedAt);
    const selected = this.model.selected?.value.asked;
    for (const row of this.#body.children) row.classList.toggle('selected', row.getAttribute('data-name') === selected);
    this.#table.hidden = rows.length === 0;
    this.#showRest(rows.length);
    const search = this.model.hello?.view.search ?? '';
    const words = [
      summary && `${count(summary.total)}${summary.isTruncated ? ' or more' : ''} in use`,
      summary && search !== '' && `${count(summary.matching)} match`,
      summary && summary.waitedFor > 0 && `${count(summary.waitedFor)} waited for`,
    ];
    setText(byId('total'), words.filter(Boolean).join(' · '));
  }

  /** Counts the leases down that can be seen. */
  tick(): void {
    for (const { lease } of this.#inSight) lease.tick();
  }

  /** Moves the focus to the link of a lock. `selected`: its name, or its id if the page does not have the whole name. */
  focus(selected: string | undefined): void {
    this.#focusRow([...this.#body.children].findIndex((row) => row.getAttribute('data-name') === selected));
  }

  /** Moves the focus to the row at a place, or to the search if there is none. */
  #focusRow(at: number): void {
    (this.#body.children[at]?.querySelector('a') ?? byId('search-locks')).focus();
  }

  #asked(): number {
    return this.model.hello?.view.rows ?? ROWS;
  }

  #showRest(shown: number): void {
    const { summary } = this.model;
    const isEmpty = shown === 0 && summary !== undefined && summary.listedAt !== null;
    byId('no-locks').hidden = !isEmpty;
    const search = this.model.hello?.view.search ?? '';
    if (isEmpty) setText(byId('no-locks'), search === '' ? 'Nothing is locked.' : 'No lock matches the search.');
    const hidden = Math.max(0, (summary?.matching ?? 0) - (summary?.shown ?? 0));
    const isFull = this.#asked() >= MAX_ROWS;
    this.#more.hidden = hidden === 0 || isFull;
    setText(this.#more, `Show ${count(Math.min(ROWS, hidden))} more`);
    const rest = isFull ? `${counted(hidden, 'name')} more: search to find them.` : `${counted(hidden, 'name')} more`;
    setText(byId('beyond'), hidden === 0 ? '' : rest);
  }

  /** A table that moves under the pointer or the focus makes its user hit another row. */
  #isInUse(): boolean {
    return this.#body.matches(':hover') || this.#body.contains(document.activeElement);
  }

  #inOrder(rows: Read<Row>[]): Read<Row>[] {
    const { compare } = ORDERS[this.#sort];
    rows.sort(compare);
    if (this.#isInUse()) {
      const places = new Map(this.#order.map((id, at) => [id, at]));
      const placeOf = ({ value }: Read<Row>): number => places.get(value.id) ?? Infinity;
      rows.sort((a, b) => (placeOf(a) === placeOf(b) ? 0 : placeOf(a) - placeOf(b)));
    }
    this.#order = rows.map(({ value }) => value.id);
    return rows;
  }

  #sortBy(key: SortKey): void {
    this.#sort = key;
    this.#showSort();
    this.render();
  }

  #showSort(): void {
    for (const head of this.#table.querySelectorAll<HTMLElement>('th[data-sort]')) {
      const key = head.dataset['sort'] as SortKey;
      if (key === this.#sort) head.setAttribute('aria-sort', ORDERS[key].direction);
      else head.removeAttribute('aria-sort');
    }
  }

  #row(): Item<Read<Row>> {
    const lease = new LeaseBar();
    const link = element('a');
    const [kind, owners, waiters] = [element('td'), element('td'), element('td')];
    const name = element('th', { scope: 'row' }, link);
    const node = element('tr', { role: 'row' }, name, kind, owners, element('td', {}, lease.node), waiters);
    cells(this.#table, node);
    let latest: Read<Row> | undefined;
    let shown: Read<Row> | undefined;
    let shownOwners = '';
    const draw = (): void => {
      if (latest === undefined || latest === shown) return;
      shown = latest;
      const { value: row, at } = latest;
      setText(kind, KIND_NAMES[row.kind]);
      lease.show(row.remaining, at, row.lease);
      setText(waiters, row.waiters === null ? '?' : row.waiters === 0 ? '–' : count(row.waiters));
      waiters.classList.toggle('some', (row.waiters ?? 0) > 0);
      const key = `${row.ownerCount} ${ownersKey(row.owners)}`;
      if (key !== shownOwners) owners.replaceChildren(ownersNode(row.owners, row.ownerCount, MAX_OWNERS));
      shownOwners = key;
    };
    const drawn: DrawnRow = { lease, draw };
    this.#rows.set(node, drawn);
    this.#observer.observe(node);
    const update = (read: Read<Row>): void => {
      const isNew = latest === undefined;
      latest = read;
      if (isNew) {
        node.setAttribute('data-name', selectionOf(read.value).value);
        link.setAttribute('href', linkTo(read.value));
        link.append(nameNode(read.value));
      }
      if (isNew || this.#inSight.has(drawn)) draw();
    };
    return { node, update };
  }

  #onSight(entries: readonly IntersectionObserverEntry[]): void {
    for (const { target, isIntersecting } of entries) {
      const drawn = this.#rows.get(target);
      if (drawn === undefined) continue;
      if (isIntersecting) this.#inSight.add(drawn);
      else this.#inSight.delete(drawn);
      drawn.draw();
    }
  }

  #forgetRemoved(): void {
    for (const [node, drawn] of this.#rows) {
      if (node.isConnected) continue;
      this.#observer.unobserve(node);
      this.#rows.delete(node);
      this.#inSight.delete(drawn);
    }
  }
}
