import * as scripts from '../../src/redis/scripts/read-write-lock.js';
import { admin } from '../support/redis.js';
import { describeLockContract } from './lock-contract.js';
import { LOCK_EXCEPTIONS } from './lock-exceptions.js';

// Where the contract wants one holder at a time, a writer is it.
describeLockContract(
  'read lock',
  (client, name, options) => client.getReadWriteLock(name, options).readLock(),
  {
    spec: (name) => ({ factory: 'getReadWriteLock', name, half: 'readLock' }),
    async holdFromOutside(name, leaseTime) {
      await admin().hset(name, { mode: 'write', '8743c9c0-0795-4907-87fd-6c719a6b4586:52:write': '1' });
      await admin().pexpire(name, leaseTime);
    },
    partialRelease: scripts.releasePartial.script!.sha,
  },
  LOCK_EXCEPTIONS['read lock'],
);
