import type { EventOf } from './history-events.js';
import { isOf, ms, type HistoryFacts } from './history-facts.js';
import type { Violate } from './history-violations.js';

/**
 * A waiter may miss the message that the latch is open. It then reads the latch again after the watchdog's time (3 s in
 * the nemesis) at the latest, and one read may stay unanswered for its deadline (0.9 s).
 */
const LOOKED_AGAIN_MS = 4_500;

/** That a latch opens with its last count-down: not before, and not never. */
export class LatchCheck {
  constructor(
    private readonly facts: HistoryFacts,
    private readonly violate: Violate,
  ) {}

  checkOpened(event: EventOf<'latch-opened'>): void {
    const { latch, of, asked, at } = event;
    if (asked >= of || this.#isGone(latch, at)) return;
    this.violate('latch opened too early', `${latch} opened after ${asked} of ${of} count-downs`, event);
  }

  checkClosed(event: EventOf<'latch-closed'>): void {
    const { latch, of, counted, lastCountedAt, at, process } = event;
    if (counted < of || this.facts.ranBetween(process, lastCountedAt, at) <= LOOKED_AGAIN_MS) return;
    if (this.#isGone(latch, at)) return;
    const message = `${latch} is closed ${ms(at - lastCountedAt)} after the last of ${of} count-downs`;
    this.violate('latch not opened', message, event);
  }

  /** The count, or a count-down, was deleted. */
  #isGone(latch: string, at: number): boolean {
    const set = this.facts.latches.get(latch);
    const { at: setAt = Infinity, lock = latch } = set ?? {};
    return this.facts.broken.some(
      ({ locks, from, at: until }) => (isOf(locks, latch) || isOf(locks, lock)) && from <= at && until >= setAt,
    );
  }
}
