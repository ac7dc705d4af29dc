import type { Member } from './members.js';

/** What is left over from the rounds of one call: what it has asked of each server and does not know the end of yet. */
export class Leftovers {
  readonly #counts = new Map<Member, number>();
  // Most calls need neither, and a map is larger than all else that is known of a round.
  #onOver: Map<Member, (() => void)[]> | undefined;
  #errors: Map<Member, unknown> | undefined;

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
    const told = this.#onOver?.get(member) ?? [];
    this.#onOver?.delete(member);
    for (const over of told) over();
  }

  /** Resolves when nothing is under way to this server. */
  whenOver(member: Member): Promise<void> {
    if (!this.has(member)) return Promise.resolve();
    const onOver = (this.#onOver ??= new Map<Member, (() => void)[]>());
    return new Promise((over) => onOver.set(member, [...(onOver.get(member) ?? []), over]));
  }

  async whenAllOver(): Promise<void> {
    await Promise.all([...this.#counts.keys()].map((member) => this.whenOver(member)));
  }

  /** Why the server failed, maybe after its round had been decided. */
  failed(member: Member, error: unknown): void {
    this.#errors ??= new Map();
    this.#errors.set(member, error);
  }

  answered(member: Member): void {
    this.#errors?.delete(member);
  }

  /** Why it failed, if that is the last that it said. */
  errorOf(member: Member): unknown {
    return this.#errors?.get(member);
  }
}
