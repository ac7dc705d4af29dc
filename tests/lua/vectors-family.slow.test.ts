import { describeReplays } from './vectors/describe-replays.js';
import { DEVIATIONS } from './vectors/deviations/table.js';
import { surroundings } from './vectors/deviations/surroundings.js';

/* Every kind of lock and synchronizer but the plain lock (vectors.test.ts), compared in the same way. */

describeReplays(Object.keys(DEVIATIONS).filter((kind) => kind !== 'lock' && !(kind in surroundings)));
