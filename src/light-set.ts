/**
 * A set that is empty most of the time, or has one element: as long as it never has two it allocates nothing. A `Set`
 * makes a new table whenever it becomes empty; with four of them that was 465 bytes for every section. In the order of
 * insertion; who goes through it while it has one element sees that one alone, whatever is added meanwhile.
 */
export class LightSet<T extends object> implements Iterable<T> {
  #only: T | undefined;
  /** All of them, from the second one on until there is none. */
  #all: Set<T> | undefined;
  /** The first of `#all`, once it was asked for and until it is deleted. */
  #first: T | undefined;
  /** Stands behind `#first`. A fresh iterator would step over every element that was deleted at the front. */
  #behindFirst: Iterator<T> | undefined;

  get size(): number {
    return this.#all?.size ?? (this.#only === undefined ? 0 : 1);
  }

  get first(): T | undefined {
    if (this.#all === undefined) return this.#only;
    if (this.#first === undefined) {
      this.#behindFirst ??= this.#all.values();
      this.#first = this.#behindFirst.next().value as T;
    }
    return this.#first;
  }

  has(element: T): boolean {
    return this.#all?.has(element) ?? this.#only === element;
  }

  add(element: T): void {
    if (this.#all !== undefined) this.#all.add(element);
    else if (this.#only === undefined) this.#only = element;
    else if (this.#only !== element) {
      this.#all = new Set([this.#only, element]);
      this.#only = undefined;
    }
  }

  /** Whether it was there. */
  delete(element: T): boolean {
    if (this.#all === undefined) {
      const found = this.#only === element;
      if (found) this.#only = undefined;
      return found;
    }
    const found = this.#all.delete(element);
    if (this.#first === element) this.#first = undefined;
    if (this.#all.size === 0) this.clear();
    return found;
  }

  clear(): void {
    this.#only = undefined;
    this.#all = undefined;
    this.#first = undefined;
    this.#behindFirst = undefined;
  }

  [Symbol.iterator](): Iterator<T> {
    return (this.#all ?? (this.#only === undefined ? [] : [this.#only])).values();
  }
}
