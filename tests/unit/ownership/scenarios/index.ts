import { forks } from './forks.js';
import { libraryScenarios } from './libraries.js';
import { limits } from './limits.js';
import { nodeScenarios } from './node.js';
import type { OwnershipScenario } from './scenario.js';
import { serverScenarios } from './servers.js';
import { straight } from './straight.js';

export const scenarioSets: Record<string, readonly OwnershipScenario[]> = {
  'one flow': straight,
  'several flows': forks,
  limits,
  'facilities of Node.js': nodeScenarios,
  'libraries that run tasks': libraryScenarios,
  servers: serverScenarios,
};
