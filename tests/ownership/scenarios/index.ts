import { forks } from './forks.js';
import { limits } from './limits.js';
import { straight } from './straight.js';
import type { OwnershipScenario } from './scenario.js';

export const scenarios: readonly OwnershipScenario[] = [...straight, ...forks, ...limits];
