import type { Member } from './joint-lock.js';

/** What a call over several servers has asked of each and does not know the end of yet. */
export class RequestsUnderWay {
  readonly #counts = new Map<Member, number>();
  readonly #onOver = new Map<Member, (() => void)[]>();

  has(member: Member): boolean {
    return this.#counts.has(member);
  }

  begin(member: Member): void {
    this.#counts.set(member, (this.#counts.get(member) ?? 0) + 1);
  }

  end(member: Member): void {
    const left = (this.#counts.get(member) ?? 0) - 1;
    if (left > 0) return void this.#counts.set(member, left);
    this.#counts.delete(member);
    const told = this.#onOver.get(member) ?? [];
    this.#onOver.delete(member);
    for (const over of told) over();
  }

  /** Resolves when nothing is under way to this server. */
  whenOver(member: Member): Promise<void> {
    if (!this.has(member)) return Promise.resolve();
    return new Promise((over) => this.#onOver.set(member, [...(this.#onOver.get(member) ?? []), over]));
  }

  async whenAllOver(): Promise<void> {
    await Promise.all([...this.#counts.keys()].map((member) => this.whenOver(member)));
  }
}
