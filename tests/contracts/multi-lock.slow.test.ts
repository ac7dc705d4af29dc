import { expect } from '@jest/globals';
import { MultiUnlockError } from '../../src/errors.js';
import { describeLockContract } from './lock-contract.js';
import { plainLock } from './plain-lock.js';

// With one member: the behavior that a lock over several locks adds. tests/integration has tests with several members.
describeLockContract('multi-lock', (client, name, options = {}) => client.getMultiLock(client.getLock(name), options), {
  ...plainLock,
  memberError(error) {
    if (!(error instanceof MultiUnlockError)) return error;
    expect(error.failures).toHaveLength(1);
    return error.failures[0]!.error;
  },
  spec: (name) => ({ factory: 'getMultiLock', members: [name] }),
});
