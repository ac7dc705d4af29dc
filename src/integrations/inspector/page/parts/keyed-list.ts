/** One child of a list: its element, and how to show another value in it. */
export interface Item<Value> {
  readonly node: HTMLElement;
  update(value: Value): void;
}

/**
 * Keeps the children of an element equal to a list of values. A child stays the same element for as long as its key is in
 * the list, so that focus, selection and open details survive an update.
 */
export class KeyedList<Value> {
  readonly #items = new Map<string, Item<Value>>();

  constructor(
    private readonly parent: HTMLElement,
    private readonly keyOf: (value: Value) => string,
    private readonly create: (value: Value) => Item<Value>,
  ) {}

  show(values: readonly Value[]): void {
    const keys = new Set(values.map(this.keyOf));
    for (const [key, { node }] of this.#items) {
      if (keys.has(key)) continue;
      node.remove();
      this.#items.delete(key);
    }
    let next = this.parent.firstElementChild;
    for (const value of values) {
      const key = this.keyOf(value);
      let item = this.#items.get(key);
      if (item === undefined) this.#items.set(key, (item = this.create(value)));
      item.update(value);
      if (item.node === next) next = next.nextElementSibling;
      else this.parent.insertBefore(item.node, next);
    }
  }
}

/** The cells of a row, each with the name of its column, which a narrow screen shows beside the cell. */
export function cells(table: HTMLElement, row: HTMLElement): void {
  const heads = [...table.querySelectorAll('thead th')];
  for (const [at, cell] of [...row.children].entries()) {
    cell.setAttribute('role', cell.tagName === 'TH' ? 'rowheader' : 'cell');
    cell.setAttribute('data-label', heads[at]?.textContent ?? '');
    if (heads[at]?.classList.contains('number') === true) cell.classList.add('number');
  }
}
