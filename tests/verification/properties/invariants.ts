/** The invariants of every schedule, by name. */
const INVARIANTS = {
  OneInside: 'no two owners count on one lock at once',
  KeyCovers: 'a holder that counts on a lock has it in Redis for at least that time',
  NoneLate: 'nothing of a call that failed takes, extends or counts anything any more',
  OwnerOnce: 'an owner id that has held a lock is never used for another request',
  OneAtATime: 'no request that counts a hold is sent while another of the same tenure may still run',
  AllCounted: 'Redis counts at least the holds that are open',
  ToldInTime: 'the end of a hold is reported before its key ends',
  ToldOnce: 'a loss is reported once for each hold, by event and by signal',
  EventsAddUp: 'each hold that a caller gets is reported once as acquired, and then once as released or lost',
  NotBelieved: 'right after the loop was blocked or a clock moved, no hold that Redis has not is believed in',
  NotAfterJump: 'after a jump of the clock no hold counts before Redis has confirmed it',
  NoRenewalAfter: 'an ended hold is not renewed',
  Bounded: 'a call settles within its wait and its command deadlines',
  Woken: 'a waiter does not sleep beside a free lock',
  HandOffBound: 'a lock does not go from hand to hand for ever while others listen',
  OrphansEnd: 'a hold without a caller is released once Redis replies, before the end of its lease',
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
