import type { PermitView } from '../../messages.js';
import { element, named, setText } from '../parts/dom.js';
import { counted } from '../parts/format.js';
import { KeyedList } from '../parts/keyed-list.js';
import { LeaseBar } from '../parts/lease.js';

/** The taken permits of a semaphore, each with its time left. */
export class PermitList {
  readonly #entries = element('ul', { class: 'permits' });
  readonly #rest = element('p', { class: 'aside' });
  readonly node = element('div', {}, this.#entries, this.#rest);
  readonly #bars = new Map<string, LeaseBar>();
  readonly #list: KeyedList<PermitView>;
  /** The longest rest that this page has seen of each permit. */
  readonly #lengths = new Map<string, number>();
  #readAt = 0;

  constructor(private readonly most: number) {
    this.#list = new KeyedList(
      this.#entries,
      ({ id }) => id,
      (permit) => this.#entry(permit),
    );
  }

  show(permits: readonly PermitView[], total: number, readAt: number): void {
    this.#readAt = readAt;
    for (const id of this.#bars.keys()) {
      if (permits.some((permit) => permit.id === id)) continue;
      this.#bars.delete(id);
      this.#lengths.delete(id);
    }
    this.#list.show(permits.slice(0, this.most));
    const more = total - Math.min(permits.length, this.most);
    setText(this.#rest, more > 0 ? `${counted(more, 'permit')} more` : '');
  }

  tick(): void {
    for (const bar of this.#bars.values()) bar.tick();
  }

  #entry({ id }: PermitView): { node: HTMLElement; update: (permit: PermitView) => void } {
    const bar = new LeaseBar();
    this.#bars.set(id, bar);
    const update = ({ remaining }: PermitView): void => {
      const length = Math.max(this.#lengths.get(id) ?? 0, remaining);
      this.#lengths.set(id, length);
      bar.show(remaining, this.#readAt, length, remaining === 0 ? ': ended, still counted' : '');
    };
    return { node: element('li', {}, named(id, 'owner'), bar.node), update };
  }
}
