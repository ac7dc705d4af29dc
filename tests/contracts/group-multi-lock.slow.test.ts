import * as scripts from '../../src/several/group/scripts.js';
import { holdValues } from '../support/lua/group-values.js';
import { describeLockContract } from './lock-contract.js';

const VALUES = ['a', 'b', 'c'];

describeLockContract('group multi-lock', (client, name, options) => client.getMultiLock(name, VALUES, options), {
  spec: (name) => ({ factory: 'getMultiLock', name, values: VALUES }),
  holdFromOutside: (name, leaseTime) => holdValues(name, ['b'], leaseTime),
  partialRelease: scripts.releasePartial.script!.sha,
  endsByKey: false,
});
