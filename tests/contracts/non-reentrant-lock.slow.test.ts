import { describeLockContract } from './lock-contract.js';
import { LOCK_EXCEPTIONS } from './lock-exceptions.js';
import { plainLock } from './plain-lock.js';

describeLockContract(
  'non-reentrant lock',
  (client, name, options) => client.getNonReentrantLock(name, options),
  {
    ...plainLock,
    spec: (name) => ({ factory: 'getNonReentrantLock', name }),
  },
  LOCK_EXCEPTIONS['non-reentrant lock'],
);
