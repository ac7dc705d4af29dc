import { describePermitContract } from './permit-contract.js';
import { semaphoreKind } from './permit-kind.js';

describePermitContract('semaphore', semaphoreKind);
