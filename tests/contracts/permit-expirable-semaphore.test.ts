import { describePermitContract } from './permit-contract.js';
import { expirableKind } from './permit-kind.js';

describePermitContract('permit-expirable semaphore', expirableKind);
