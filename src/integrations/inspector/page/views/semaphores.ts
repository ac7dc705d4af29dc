import type { Row } from '../../messages.js';
import { byId, element, nameNode, setText, within } from '../parts/dom.js';
import { KIND_NAMES } from '../../../shared/inspection-words.js';
import { counted } from '../parts/format.js';
import { KeyedList, type Item } from '../parts/keyed-list.js';
import type { Model, Read } from '../parts/model.js';
import { linkTo } from '../parts/route.js';
import { isSemaphore } from './locks.js';
import { PermitList } from './permits.js';

const MAX_PERMITS = 6;

/** Semaphores and latches, as cards. */
export class SemaphoresView {
  readonly #section = byId('view-semaphores');
  readonly #permits = new Map<string, PermitList>();
  readonly #list: KeyedList<Read<Row>>;

  constructor(private readonly model: Model) {
    this.#list = new KeyedList(
      byId('semaphores'),
      ({ value }) => value.id,
      ({ value }) => this.#card(value),
    );
  }

  render(): void {
    const found = [...this.model.rows.values()].filter(({ value }) => isSemaphore(value));
    found.sort(({ value: a }, { value: b }) => (a.name < b.name ? -1 : 1));
    this.#list.show(found);
    for (const id of this.#permits.keys()) if (!this.model.rows.has(id)) this.#permits.delete(id);
    within(this.#section, '.empty').hidden = found.length > 0 || (this.model.summary?.listedAt ?? null) === null;
  }

  tick(): void {
    for (const permits of this.#permits.values()) permits.tick();
  }

  #card(semaphore: Row): Item<Read<Row>> {
    const figures = element('p', { class: 'free' });
    const kind = element('p', { class: 'aside' });
    const share = element('span', { class: 'bar', 'aria-hidden': 'true' }, element('span'));
    const permits = new PermitList(MAX_PERMITS);
    this.#permits.set(semaphore.id, permits);
    const title = element('h3', {}, element('a', { href: linkTo(semaphore) }, nameNode(semaphore)));
    const node = element('li', { class: 'card' }, title, kind, figures, share, permits.node);
    const update = ({ value: row, at }: Read<Row>): void => {
      setText(kind, KIND_NAMES[row.kind]);
      const waiting = (row.waiters ?? 0) > 0 ? ` · ${counted(row.waiters ?? 0, 'client')} waiting` : '';
      const taken = row.kind === 'permits' ? ` · ${row.permitCount} taken` : '';
      setText(
        figures,
        `${row.kind === 'permits' ? `${row.value ?? 0} free` : `stands at ${row.value ?? 0}`}${taken}${waiting}`,
      );
      const free = Number(row.value ?? 0);
      share.hidden = row.kind !== 'permits' || free + row.permitCount <= 0;
      (share.firstElementChild as HTMLElement).style.transform =
        `scaleX(${row.permitCount / Math.max(1, free + row.permitCount)})`;
      permits.show(row.permits, row.permitCount, at);
    };
    return { node, update };
  }
}
