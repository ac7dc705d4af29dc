import { describeLockContract } from './lock-contract.js';
import { LOCK_EXCEPTIONS } from './lock-exceptions.js';
import { plainLock } from './plain-lock.js';

describeLockContract(
  'spin lock',
  (client, name, options) => client.getSpinLock(name, options),
  {
    ...plainLock,
    spec: (name) => ({ factory: 'getSpinLock', name }),
  },
  LOCK_EXCEPTIONS['spin lock'],
);
