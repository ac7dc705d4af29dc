import { runInside, type FlowHold } from './flow.js';

/** The body of a `withPermits` or `withPermit`. Its flow is inside of it, although permits have no owner. */
export class Section implements FlowHold {
  open = true;

  constructor(readonly sections: Sections) {}
}

/** The sections of one client that run now. */
export class Sections {
  #running = 0;

  get running(): number {
    return this.#running;
  }

  async run<T>(body: () => Promise<T>): Promise<T> {
    const section = new Section(this);
    this.#running += 1;
    try {
      return await runInside(section, body);
    } finally {
      section.open = false;
      this.#running -= 1;
    }
  }
}
