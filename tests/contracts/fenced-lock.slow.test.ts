import * as scripts from '../../src/redis/scripts/lock.js';
import { describeLockContract } from './lock-contract.js';
import { plainLock } from './plain-lock.js';

describeLockContract('fenced lock', (client, name, options) => client.getFencedLock(name, options), {
  ...plainLock,
  spec: (name) => ({ factory: 'getFencedLock', name }),
  partialRelease: scripts.releasePartial.script!.sha,
});
