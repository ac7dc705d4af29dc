import { describeReplays } from './vectors/describe-replays.js';
import { surroundings } from './vectors/deviations/surroundings.js';

/* A server without scripts, a cluster, a replica, replies that are lost: compared as in vectors.test.ts. */

describeReplays(Object.keys(surroundings));
