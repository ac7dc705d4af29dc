import { expect } from '@jest/globals';
import { MultiUnlockError } from '../../src/errors.js';
import { describeLockContract } from './lock-contract.js';
import { plainLock } from './plain-lock.js';

// Of one member: what a lock over several adds to what its members do. tests/integration has those of several.
describeLockContract('multi-lock', (client, name, options = {}) => client.getMultiLock(client.getLock(name), options), {
  ...plainLock,
  memberError(error) {
    if (!(error instanceof MultiUnlockError)) return error;
    expect(error.failures).toHaveLength(1);
    return error.failures[0]!.error;
  },
  spec: (name) => ({ factory: 'getMultiLock', members: [name] }),
});
