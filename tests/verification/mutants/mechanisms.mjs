// @ts-check
import { CLOCKS } from './clocks.mjs';
import { HOT_LOCKS } from './hot-locks.mjs';
import { LANES_AND_QUEUES } from './models.mjs';
import { SABOTAGES } from './nemesis.mjs';
import { PROMISES } from './promises.mjs';
import { RED_LOCKS } from './red-locks.mjs';
import { REQUESTS } from './requests.mjs';
import { ROLL } from './roll.mjs';
import { SHARING } from './sharing.mjs';
import { TENURES } from './tenures.mjs';
import { WAITING } from './waiting.mjs';

/** All that can be taken out. */
export const MECHANISMS = [
  ...REQUESTS,
  ...ROLL,
  ...TENURES,
  ...CLOCKS,
  ...WAITING,
  ...SHARING,
  ...LANES_AND_QUEUES,
  ...PROMISES,
  ...RED_LOCKS,
  ...HOT_LOCKS,
  ...SABOTAGES,
];
