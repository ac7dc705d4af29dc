import { describeLockContract } from './lock-contract.js';
import { plainLock } from './plain-lock.js';

describeLockContract('fair lock', (client, name, options) => client.getFairLock(name, options), {
  ...plainLock,
  spec: (name) => ({ factory: 'getFairLock', name }),
});
