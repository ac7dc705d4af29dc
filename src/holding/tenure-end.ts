import { RefusedError, type LockError } from '../errors.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { ReleaseReply } from '../redis/scripts/replies.js';

/** How the last request of a tenure ended. */
export type TenureEnd =
  | { readonly kind: 'freed' | 'handed' }
  | { readonly kind: 'gone'; readonly inDoubt: boolean }
  | {
      readonly kind: 'failed';
      readonly error: LockError;
      /** A hand-off may have made this owner the holder. */
      readonly alsoOwners: readonly string[];
      /** Monotonic ms until which the request may still run, and the end of the lease that it may set. */
      readonly openUntil: number;
      readonly until: number;
    };

const FREED = { kind: 'freed' } as const;

/**
 * Redis refused the request for its state, as it refuses a hand-off at maxmemory. Freeing needs no memory, so a plain
 * release follows. It also names the next owner: an earlier attempt of the hand-off may have run. A missing permission
 * is another matter: the error says what to allow.
 */
export const isRefused = (end: TenureEnd): end is TenureEnd & { kind: 'failed' } =>
  end.kind === 'failed' && end.error instanceof RefusedError && end.error.rule === undefined;

/** Settles when Redis has answered the release. `ended` says what the caller's promise rejects with, if anything. */
export const whenFreed = (
  request: ScriptRequest<ReleaseReply>,
  ended: (end: TenureEnd) => LockError | undefined,
): Promise<void> =>
  new Promise((resolve, reject) => {
    request.onDone(() => {
      const error = ended(freeingEnd(request));
      if (error === undefined) resolve();
      else reject(error);
    });
  });

function freeingEnd({ error, reply, inDoubt }: ScriptRequest<ReleaseReply>): TenureEnd {
  if (error !== undefined) return failedEnd(error);
  if (reply === 'freed') return FREED;
  // What is given back now cannot have been by an earlier attempt.
  return { kind: 'gone', inDoubt: inDoubt && reply !== 'partly' };
}

/** Of a request that gives nobody a lease, or that was not even sent. */
export const failedEnd = (error: LockError): TenureEnd => ({
  kind: 'failed',
  error,
  alsoOwners: [],
  openUntil: 0,
  until: 0,
});
