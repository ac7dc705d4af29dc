// @ts-check
/* Names that several mutants use: suites, as patterns of their files, and files of src. */

export const LATE = 'tests/faults/late-delivery';
export const LOST = 'tests/faults/lost-replies.slow.test';
export const LOSS = 'tests/integration/lease-loss';
export const UNKNOWN = 'tests/faults/unknown-outcomes';
export const WAKING = 'tests/faults/waking';
export const SUBSCRIPTIONS = 'tests/faults/subscriptions';
export const PROPERTIES = 'tests/verification/properties';
export const CONTRACT = 'tests/contracts/lock.test';

export const entry = 'src/waiting/wait-line.ts';
export const wakeUps = 'src/waiting/wake-ups.ts';
export const failedTries = 'src/waiting/failed-tries.ts';
export const look = 'src/waiting/retry-schedule.ts';
export const grants = 'src/waiting/grants.ts';
export const handOvers = 'src/waiting/permit-hand-overs.ts';
export const sharedGrants = 'src/waiting/shared-grants.ts';
export const tenure = 'src/holding/tenure.ts';
export const releases = 'src/holding/release-in-turn.ts';
export const turns = 'src/holding/request-turns.ts';
export const lease = 'src/holding/lease.ts';
export const request = 'src/redis/requests/script-request.ts';
export const doubt = 'src/redis/requests/doubt.ts';
export const subscriber = 'src/redis/connections/subscriber.ts';
export const watchdog = 'src/holding/watchdog.ts';
export const waiter = 'src/waiting/waiter.ts';
export const lockWaiter = 'src/waiting/lock-waiter.ts';
