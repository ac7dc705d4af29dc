import { describeLockContract } from './lock-contract.js';
import { plainLock } from './plain-lock.js';

// Of one member: what a lock over several adds to what its members do. tests/integration has those of several.
describeLockContract('multi-lock', (client, name, options = {}) => client.getMultiLock(client.getLock(name), options), {
  ...plainLock,
  spec: (name) => ({ factory: 'getMultiLock', members: [name] }),
});
