import type { MonotonicMs } from '../clock.js';
import { RefusedError, type LockError } from '../errors.js';
import type { Doubt } from '../redis/requests/doubt.js';
import type { SentRelease } from '../protocols/lock-protocol.js';

/** A failed release or hand-over. The client continues the release in the background. */
export interface FailedEnd {
  readonly kind: 'failed';
  readonly error: LockError;
  /** A hand-over may have given the lock to one of these owners. */
  readonly alsoOwners: readonly string[];
  /** Until when an attempt of the request may still run. */
  readonly doubtUntil: MonotonicMs;
  /** When the lease that the request may set has ended. */
  readonly leaseEnd: MonotonicMs;
}

/**
 * How the last request of a tenure ended:
 *
 * - `freed`: Redis freed the lock.
 * - `handed`: the next owner has the lock, and its waiter has got it.
 * - `handed late`: the old owner has left Redis, but the reply came after the next owner's lease had ended.
 * - `gone`: Redis did not have the owner. `doubt`: an earlier attempt may have removed it.
 */
export type TenureEnd =
  | { readonly kind: 'freed' | 'handed' | 'handed late' }
  | { readonly kind: 'gone'; readonly doubt: Doubt | undefined }
  | FailedEnd;

const FREED = { kind: 'freed' } as const;

/**
 * Whether Redis refused the request because of its own state, as it refuses a hand-over at `maxmemory`. A plain release
 * needs no memory, so the tenure sends one. The release also names the next owner, because an earlier attempt of the
 * hand-over may have run. A missing permission is no such refusal: the error names the permission.
 */
export const isRefused = (end: TenureEnd): end is FailedEnd =>
  end.kind === 'failed' && end.error instanceof RefusedError && end.error.rule === undefined;

/** Settles when Redis has answered the release. Rejects with the error that `ended` returns, if any. */
export const whenFreed = (request: SentRelease, ended: (end: TenureEnd) => LockError | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    request.onDone(() => {
      const error = ended(freeingEnd(request));
      if (error === undefined) resolve();
      else reject(error);
    });
  });

function freeingEnd({ error, reply, doubt }: SentRelease): TenureEnd {
  if (error !== undefined) return failedEnd(error);
  if (reply === 'freed') return FREED;
  // `partly`: this attempt released a part, so no earlier attempt has released the owner.
  return { kind: 'gone', doubt: reply === 'partly' ? undefined : doubt };
}

/** The end by a request that sets no lease, or that was not sent. */
export const failedEnd = (error: LockError): FailedEnd => ({
  kind: 'failed',
  error,
  alsoOwners: [],
  doubtUntil: 0,
  leaseEnd: 0,
});
