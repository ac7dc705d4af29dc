import {
  readWriteLockAcquireRead,
  readWriteLockAcquireWrite,
  readWriteLockHandOff,
  readWriteLockNestRead,
  readWriteLockNestWrite,
  readWriteLockRelease,
  readWriteLockReleasePartial,
  readWriteLockReleaseReaders,
  readWriteLockRenew,
  readWriteLockRenewKey,
} from './generated.js';
import {
  isGrant,
  replyAcquire,
  replyHandOff,
  replyHeld,
  replyRelease,
  replyReleases,
  replyRenewal,
  replyRenewals,
} from './replies.js';
import { bind } from './script.js';

export const acquireRead = bind(readWriteLockAcquireRead, { reply: replyAcquire, isGrant });

export const acquireWrite = bind(readWriteLockAcquireWrite, { reply: replyAcquire, isGrant });

export const nestRead = bind(readWriteLockNestRead, { reply: replyHeld });

export const nestWrite = bind(readWriteLockNestWrite, { reply: replyHeld });

export const releasePartial = bind(readWriteLockReleasePartial, { reply: replyHeld });

export const release = bind(readWriteLockRelease, { reply: replyRelease });

/** One reply for each owner. */
export const releaseReaders = bind(readWriteLockReleaseReaders, { reply: replyReleases });

/** Hands the write lock to the next writer. */
export const handOff = bind(readWriteLockHandOff, { reply: replyHandOff, isGrant });

/** One reply for each lock. */
export const renew = bind(readWriteLockRenew, {
  reply: replyRenewals,
  // The caller continues with one key at a time, even for a single lock: its read holds have keys of their own.
  ifSplit: () => 'fail',
});

/** `lost`: the key does not exist, or its owner no longer holds the lock. */
export const renewKey = bind(readWriteLockRenewKey, { reply: replyRenewal });
