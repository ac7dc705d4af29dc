import { describeLockContract } from './lock-contract.js';
import { LOCK_EXCEPTIONS } from './lock-exceptions.js';
import { plainLock } from './plain-lock.js';

describeLockContract(
  'non-reentrant fair lock',
  (client, name, options) => client.getNonReentrantFairLock(name, options),
  {
    ...plainLock,
    spec: (name) => ({ factory: 'getNonReentrantFairLock', name }),
  },
  LOCK_EXCEPTIONS['non-reentrant fair lock'],
);
