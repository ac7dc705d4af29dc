import { fakeAdapter } from './fake-acquisition.js';
import type { OwnershipAdapter } from '../../unit/ownership/scenarios/scenario.js';

/*
 * The sources that a process outside of the test runner needs, bundled into one file, and the locks of its scenarios.
 * Another module with the same `openLocks` runs the scenarios on other locks.
 */

export { boundDeferred, boundRejection, supportsBoundPromises } from '../../../src/ownership/bound-promise.js';
export { currentHolds, runInside, runOutside } from '../../../src/ownership/flow.js';
export { Random } from '../random.js';
export { runRandomFlows } from '../../unit/ownership/random-flows.js';
export { expectedUnhandledRejections, unhandledRejections } from '../../unit/ownership/rejections.js';
export { reschedule } from '../../unit/ownership/rescheduling.js';

export interface OpenedLocks {
  readonly adapter: OwnershipAdapter;
  readonly close: () => Promise<void>;
}

export function openLocks(): Promise<OpenedLocks> {
  return Promise.resolve({ adapter: fakeAdapter(), close: () => Promise.resolve() });
}
