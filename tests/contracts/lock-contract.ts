import { describe } from '@jest/globals';
import { abortingContract } from './lock/aborting.js';
import { acquiringContract } from './lock/acquiring.js';
import { argumentsContract } from './lock/arguments.js';
import { backgroundContract } from './lock/background.js';
import { contextsContract } from './lock/contexts.js';
import { eventsContract } from './lock/events.js';
import { exclusionContract } from './lock/exclusion.js';
import { releasingContract } from './lock/releasing.js';
import { holdsContract } from './lock/holds.js';
import { leasesContract } from './lock/leases.js';
import { nestingContract } from './lock/nesting.js';
import { readingContract } from './lock/reading.js';
import { wakingContract } from './lock/waking.js';
import { withLockContract } from './lock/with-lock.js';
import { registerWithout, type Exceptions } from './contract-test.js';
import { leaveNothing, type LockCapabilities, type LockKind, type MakeLock } from './lock-kind.js';

/** The contract of every lock, except the exceptions of each kind (lock-exceptions.ts). */
export function describeLockContract(
  label: string,
  make: MakeLock,
  capabilities: LockCapabilities,
  exceptions: Exceptions = {},
): void {
  const kind: LockKind = { make, ...capabilities };
  describe(label, () => {
    leaveNothing();
    registerWithout(exceptions, () => {
      acquiringContract(kind);
      releasingContract(kind);
      readingContract(kind);
      holdsContract(kind);
      withLockContract(kind);
      backgroundContract(kind);
      nestingContract(kind);
      leasesContract(kind);
      contextsContract(kind);
      abortingContract(kind);
      argumentsContract(kind);
      wakingContract(kind);
      eventsContract(kind);
      exclusionContract(kind);
    });
  });
}
