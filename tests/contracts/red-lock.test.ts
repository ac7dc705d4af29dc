import { describeLockContract } from './lock-contract.js';
import { plainLock } from './plain-lock.js';

// Of one server: what a majority adds to what its members do. tests/integration has those of three.
describeLockContract('RedLock', (client, name, options = {}) => client.getRedLock(client.getLock(name), options), {
  ...plainLock,
  spec: (name) => ({ factory: 'getRedLock', members: [name] }),
});
