import { describeLockContract } from './lock-contract.js';
import { makePlainLock, plainLock } from './plain-lock.js';

describeLockContract('lock', makePlainLock, plainLock);
