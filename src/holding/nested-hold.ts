/*
 * A nested hold: the acquire of a call from inside a hold of the same lock. It takes its turn among the requests of the
 * tenure (request-turns.ts) and carries the hold count as an absolute number.
 */
import { ClientClosedError } from '../errors.js';
import { answeredTooLate, grantDeadline, type HoldRecord, type HoldTerms } from './hold-record.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import { tellAcquired } from './tenure-events.js';
import type { Tenure } from './tenure.js';

export interface NestedCall {
  readonly protocol: LockProtocol;
  readonly terms: HoldTerms;
  readonly signal: AbortSignal | undefined;
  readonly client: { readonly closed: boolean };
  /** If it throws, nothing is sent. */
  begins(): void;
}

/**
 * A hold inside `parent`, or undefined if that was released meanwhile. A hold whose call was aborted before the answer
 * came is not told to listeners: its caller does not get it.
 */
export function openNested(
  tenure: Tenure,
  parent: HoldRecord,
  { protocol, terms, signal, client, begins }: NestedCall,
): Promise<HoldRecord | undefined> {
  const { turns } = tenure;
  const open = async (settleBy: number): Promise<HoldRecord | undefined> => {
    await turns.ready(parent);
    parent.throwIfLost();
    if (parent.state !== 'open' || tenure.state !== 'held' || !parent.holds(protocol)) return undefined;
    begins();
    const { clock } = tenure.services;
    const jumped = clock.jumped;
    tenure.lease.mayLast(terms.leaseMs);
    const held = tenure.holds.filter(({ half }) => half === protocol.half).length;
    const open = tenure.holds.map((hold) => hold.protocol);
    const sent = protocol.acquireNested(tenure.owner, held + 1, terms.leaseMs, open, tenure.token);
    const request = await turns.answered(sent, settleBy);
    turns.doubt(request);
    try {
      tenure.throwIfLost();
      if (request.error !== undefined) return await turns.failed(request, parent);
      if (request.reply === 'gone') throw tenure.lose('gone');
      // From here on nothing is released: the next request carries an absolute count, or the release of the outer
      // hold, which waits, frees the lock.
      parent.throwIfLost();
      if (client.closed) throw new ClientClosedError();
      const sentAt = request.sentAt + jumped;
      const now = clock.now();
      if (now >= grantDeadline(sentAt, terms.leaseMs)) throw answeredTooLate();
      const hold = tenure.open(terms, sentAt, now, parent, protocol);
      hold.token = protocol.tokenIn?.(request.reply);
      if (hold.token !== undefined) tenure.token = hold.token;
      if (signal?.aborted !== true) tellAcquired(tenure, hold);
      return hold;
    } catch (error) {
      // Nobody fails while an attempt may still run.
      await request.whenQuiet();
      throw error;
    }
  };
  return turns.take(open, (error) => {
    parent.redisUnavailable(error);
    throw error;
  });
}
