import { expect } from '@jest/globals';
import { MultiUnlockError, NoQuorumError } from '../../src/errors.js';
import { describeLockContract } from './lock-contract.js';
import { plainLock } from './plain-lock.js';

// With one server: the behavior that a majority adds. tests/integration has tests with three servers.
describeLockContract(
  'RedLock',
  (client, name, options = {}) => client.getRedLock(client.getLock(name), { ...options, driftFactor: 0 }),
  {
    ...plainLock,
    memberError(error) {
      const members =
        error instanceof MultiUnlockError ? error.failures : error instanceof NoQuorumError ? error.results : [];
      if (members.length === 0) return error;
      expect(members).toHaveLength(1);
      return members[0]!.error;
    },
    spec: (name) => ({ factory: 'getRedLock', members: [name] }),
  },
);
