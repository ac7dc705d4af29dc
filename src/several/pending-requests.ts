import type { Member } from './members.js';

/** The pending requests of all rounds of one call, by server. */
export class PendingRequests {
  readonly #counts = new Map<Member, number>();
  // Most calls need neither of these maps.
  #onIdle: Map<Member, (() => void)[]> | undefined;
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
    const waiting = this.#onIdle?.get(member) ?? [];
    this.#onIdle?.delete(member);
    for (const idle of waiting) idle();
  }

  /** Resolves when no request to this server is pending. */
  whenIdle(member: Member): Promise<void> {
    if (!this.has(member)) return Promise.resolve();
    const onIdle = (this.#onIdle ??= new Map<Member, (() => void)[]>());
    return new Promise((idle) => onIdle.set(member, [...(onIdle.get(member) ?? []), idle]));
  }

  async whenAllIdle(): Promise<void> {
    await Promise.all([...this.#counts.keys()].map((member) => this.whenIdle(member)));
  }

  /** The server failed with this error, possibly after its round had been decided. */
  failed(member: Member, error: unknown): void {
    this.#errors ??= new Map();
    this.#errors.set(member, error);
  }

  answered(member: Member): void {
    this.#errors?.delete(member);
  }

  /** The error of the server's newest response, if that was an error. */
  errorOf(member: Member): unknown {
    return this.#errors?.get(member);
  }
}
