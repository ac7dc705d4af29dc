const MOST = 4_000;

/** Some of many values, spread evenly over all of them. */
export class Sample {
  #values: number[] = [];
  #every = 1;
  #seen = 0;

  add(value: number): void {
    this.#seen += 1;
    if (this.#seen % this.#every > 0) return;
    this.#values.push(value);
    if (this.#values.length < MOST) return;
    this.#values = this.#values.filter((_, at) => at % 2 === 1);
    this.#every *= 2;
  }

  get values(): readonly number[] {
    return this.#values;
  }
}
