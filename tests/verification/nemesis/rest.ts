/** Where the flows of a process stop between two sections, for as long as the bench looks around. */
export class Rest {
  #walking = 0;
  #asked = new AbortController();
  #goesOn = new Signal();
  #allStand = new Signal();

  /** Aborts when flows shall stop. A flow that only takes long ignores it. */
  get asked(): AbortSignal {
    return this.#asked.signal;
  }

  /** So many more flows. */
  join(flows = 1): void {
    this.#walking += flows;
  }

  leave(): void {
    this.#walking -= 1;
    if (this.#walking === 0 && this.#asked.signal.aborted) this.#allStand.fire();
  }

  /** Between two sections. */
  async pass(): Promise<void> {
    while (this.#asked.signal.aborted) {
      const goesOn = this.#goesOn.fired;
      this.leave();
      await goesOn;
      this.join();
    }
  }

  /** Resolves when all flows stand. */
  begin(): Promise<undefined> {
    this.#asked.abort();
    if (this.#walking === 0) this.#allStand.fire();
    return this.#allStand.fired;
  }

  end(): undefined {
    this.#asked = new AbortController();
    this.#allStand = new Signal();
    const goesOn = this.#goesOn;
    this.#goesOn = new Signal();
    goesOn.fire();
  }
}

class Signal {
  fire!: () => void;
  readonly fired = new Promise<undefined>((resolve) => (this.fire = () => resolve(undefined)));
}
