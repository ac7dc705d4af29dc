import { groupBy, isOf, named, type HeldLock, type HistoryFacts } from './history-facts.js';
import type { Violate } from './history-violations.js';

/** That the fencing tokens of a lock rise. */
export class TokenCheck {
  constructor(
    private readonly facts: HistoryFacts,
    private readonly violate: Violate,
  ) {}

  checkTokens(holds: readonly HeldLock[]): void {
    for (const sameCounter of groupBy(holds, (hold) => this.#epochOf(hold))) this.#checkCounter(sameCounter);
  }

  /** Number of losses of the counter; a separate value where the number is unknown. */
  #epochOf({ lock, invoke, ok }: HeldLock): string {
    const losses = this.facts.broken.filter(({ tokensLost, locks }) => tokensLost && isOf(locks, lock));
    const unsure = losses.some(({ from, at }) => invoke.at < at && ok.at > from);
    return unsure ? ok.hold : String(losses.filter(({ at }) => at <= invoke.at).length);
  }

  /** Checks that a request after another grant gets the larger token. */
  #checkCounter(holds: readonly HeldLock[]): void {
    const fenced = holds.flatMap((hold) =>
      hold.ok.token === undefined ? [] : [{ hold, token: BigInt(hold.ok.token) }],
    );
    const granted = [...fenced].sort((a, b) => a.hold.ok.at - b.hold.ok.at);
    let largest: (typeof fenced)[number] | undefined;
    let next = 0;
    for (const each of [...fenced].sort((a, b) => a.hold.invoke.at - b.hold.invoke.at)) {
      for (let grant = granted[next]; grant && grant.hold.ok.at <= each.hold.invoke.at; grant = granted[++next]) {
        if (largest === undefined || grant.token > largest.token) largest = grant;
      }
      if (largest) this.#checkTokenPair(largest, each);
    }
    for (const same of groupBy(fenced, ({ token }) => token)) {
      const [first, ...others] = same;
      const other = others.find(({ hold }) => hold.ok.owner !== first?.hold.ok.owner);
      if (first && other && !this.#ordered(first.hold, other.hold)) this.#tokenWentBack(first, other);
    }
  }

  #ordered(a: HeldLock, b: HeldLock): boolean {
    return a.ok.at <= b.invoke.at || b.ok.at <= a.invoke.at;
  }

  #checkTokenPair(before: { hold: HeldLock; token: bigint }, after: { hold: HeldLock; token: bigint }): void {
    const sameOwner = before.hold.ok.owner === after.hold.ok.owner;
    if (after.token < before.token || (after.token === before.token && !sameOwner)) this.#tokenWentBack(before, after);
  }

  #tokenWentBack(before: { hold: HeldLock; token: bigint }, after: { hold: HeldLock; token: bigint }): void {
    const message = `${named(after.hold)} has token ${String(after.token)}, ${named(before.hold)} had ${String(before.token)}`;
    this.violate('fencing token went back', message, before.hold.ok, after.hold.invoke, after.hold.ok);
  }
}
