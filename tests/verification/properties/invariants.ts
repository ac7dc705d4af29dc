/** What every schedule must keep to, by name. */
const INVARIANTS = {
  OneInside: 'no two owners count on one lock at once',
  KeyCovers: 'whoever counts on a lock has it in Redis, for at least as long as he counts on it',
  NoneLate: 'nothing of a call that failed takes, extends or counts anything any more',
  OwnerOnce: 'an owner id that ever had a lock is not asked for with again',
  OneAtATime: 'no request that counts a hold is sent while another of the same tenure may still run',
  AllCounted: 'Redis counts at least the holds that are open',
  ToldInTime: 'a hold that ends is told before its key does',
  ToldOnce: 'a loss is told once for each hold, by event and by signal',
  EventsAddUp: 'each hold that a caller gets is told once as acquired, and then once as released or lost',
  NotBelieved: 'right after the loop was blocked or a clock moved, no hold that Redis has not is believed in',
  NotAfterJump: 'after a jump of the clock no hold counts before Redis has confirmed it',
  NoRenewalAfter: 'what nobody holds any more is not renewed',
  Bounded: 'a call settles within its wait and its command deadlines',
  Woken: 'a waiter does not sleep beside a free lock',
  HandOffBound: 'a lock does not go from hand to hand for ever while others listen',
  OrphansEnd: 'what nobody owns is given back once Redis answers, and does not wait for its lease',
  AllSettled: 'every call settles',
  NothingLeft: 'no waiter, entry, channel, timer, renewal or compensation is left',
} as const;

export type Invariant = keyof typeof INVARIANTS;

export class Violation extends Error {
  constructor(invariant: Invariant, detail: string) {
    super(`${invariant} (${INVARIANTS[invariant]}): ${detail}`);
    this.name = 'Violation';
  }
}
