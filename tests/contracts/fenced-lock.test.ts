import { describeLockContract } from './lock-contract.js';

describeLockContract({
  label: 'fenced lock',
  make: (client, name, options) => client.getFencedLock(name, options),
  spec: (name) => ({ factory: 'getFencedLock', name }),
});
