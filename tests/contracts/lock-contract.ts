import { describe } from '@jest/globals';
import { acquiringContract } from './lock/acquiring.js';
import { leaveNothing, type LockKind } from './lock-kind.js';

/** What every reentrant lock that has one owner at a time must do. */
export function describeLockContract(kind: LockKind): void {
  describe(kind.label, () => {
    leaveNothing();
    acquiringContract(kind);
  });
}
