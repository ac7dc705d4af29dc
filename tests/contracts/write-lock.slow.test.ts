import * as scripts from '../../src/redis/scripts/read-write-lock.js';
import { admin } from '../support/redis.js';
import { describeLockContract } from './lock-contract.js';

// Alone, the write half is a lock like any other.
describeLockContract('write lock', (client, name, options) => client.getReadWriteLock(name, options).writeLock(), {
  spec: (name) => ({ factory: 'getReadWriteLock', name, half: 'writeLock' }),
  async holdFromOutside(name, leaseTime) {
    await admin().hset(name, { mode: 'write', '8743c9c0-0795-4907-87fd-6c719a6b4586:52:write': '1' });
    await admin().pexpire(name, leaseTime);
  },
  partialRelease: scripts.releasePartial.script!.sha,
});
