import * as scripts from '../../src/redis/scripts/lock.js';
import { admin } from '../support/redis.js';
import type { LockCapabilities, LockKind, MakeLock } from './lock-kind.js';

export const makePlainLock: MakeLock = (client, name, options) => client.getLock(name, options);

export const plainLock: LockCapabilities = {
  spec: (name) => name,
  async holdFromOutside(name, leaseTime) {
    await admin().hset(name, '8743c9c0-0795-4907-87fd-6c719a6b4586:52', '1');
    await admin().pexpire(name, leaseTime);
  },
  partialRelease: scripts.releasePartial.script!.sha,
};

export const plainLockKind: LockKind = { make: makePlainLock, ...plainLock };
