import { describeLockContract } from './lock-contract.js';

describeLockContract({
  label: 'lock',
  make: (client, name, options) => client.getLock(name, options),
  spec: (name) => name,
});
