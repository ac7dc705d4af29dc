/*
 * A nested hold: the acquire of a call from inside a hold of the same lock. The acquire takes its turn among the
 * requests of the tenure (request-turns.ts). It carries the hold count as an absolute number.
 */
import type { LeaseClockMs } from '../clock.js';
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
  /** Runs right before the acquire is sent. If it throws, the client sends nothing. */
  beforeSending(): void;
}

/**
 * Opens a hold inside `parent`. Resolves with `undefined` if `parent` was released first. If the call was aborted
 * before the reply, the client emits no event for the hold, because the caller does not get it.
 */
export function openNested(
  tenure: Tenure,
  parent: HoldRecord,
  { protocol, terms, signal, client, beforeSending }: NestedCall,
): Promise<HoldRecord | undefined> {
  const { turns } = tenure;
  const open = async (settleBy: LeaseClockMs): Promise<HoldRecord | undefined> => {
    await turns.ready(parent);
    parent.throwIfLost();
    if (parent.state !== 'open' || tenure.state !== 'held' || !parent.holds(protocol)) return undefined;
    beforeSending();
    const { clock } = tenure.services;
    const jumped = clock.jumped;
    tenure.lease.recordLease(terms.leaseMs);
    const held = tenure.holds.filter(({ side }) => side === protocol.side).length;
    const open = tenure.holds.map((hold) => hold.protocol);
    const sent = protocol.acquireNested(tenure.owner, held + 1, terms.leaseMs, open, tenure.token);
    const request = await turns.answered(sent, settleBy);
    turns.addDoubt(request.doubt);
    try {
      tenure.throwIfLost();
      if (request.error !== undefined) return await turns.failed(request, parent);
      if (request.reply?.kind !== 'held') throw tenure.lose('gone');
      // A failure from here on releases nothing. The next request of the tenure carries an absolute count, or the
      // release of the outer hold, which waits for this turn, frees the lock.
      parent.throwIfLost();
      if (client.closed) throw new ClientClosedError();
      const sentAt = clock.at(request.sentAt, jumped);
      const now = clock.now();
      if (now >= grantDeadline(sentAt, terms.leaseMs)) throw answeredTooLate();
      const hold = tenure.open(terms, sentAt, now, parent, protocol);
      hold.token = request.reply.token;
      if (hold.token !== undefined) tenure.token = hold.token;
      if (signal?.aborted !== true) tellAcquired(tenure, hold, terms.askedAt);
      return hold;
    } catch (error) {
      // The call does not reject while an attempt may still run.
      await request.doubt?.settled();
      throw error;
    }
  };
  return turns.take(open, (error) => {
    parent.redisUnavailable(error);
    throw error;
  });
}
