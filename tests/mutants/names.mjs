// @ts-check
/* What several mutants name: suites, as patterns of their files, and files of src. */

export const LATE = 'tests/faults/late-delivery';
export const LOST = 'tests/faults/lost-replies.test';
export const LOSS = 'tests/integration/lease-loss';
export const UNKNOWN = 'tests/faults/unknown-outcomes';
export const WAKING = 'tests/faults/waking';
export const SUBSCRIPTIONS = 'tests/faults/subscriptions';
export const PROPERTIES = 'tests/properties';
export const CONTRACT = 'tests/contracts/lock.test';

export const entry = 'src/core/lock-entry.ts';
export const look = 'src/core/next-look.ts';
export const grants = 'src/core/grants.ts';
export const tenure = 'src/core/tenure.ts';
export const turns = 'src/core/turns.ts';
export const lease = 'src/core/lease.ts';
export const request = 'src/redis/script-request.ts';
export const attempts = 'src/redis/request-attempts.ts';
export const subscriber = 'src/redis/subscriber.ts';
export const watchdog = 'src/core/watchdog.ts';
export const waiter = 'src/core/waiter.ts';
