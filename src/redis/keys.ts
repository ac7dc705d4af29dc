/**
 * Every key and channel name, as Redisson builds them. A name with a `{` anywhere is taken to carry its own hash tag.
 */
function prefixName(prefix: string, name: string): string {
  return name.includes('{') ? `${prefix}:${name}` : `${prefix}:{${name}}`;
}

function suffixName(name: string, suffix: string): string {
  return name.includes('{') ? `${name}:${suffix}` : `{${name}}:${suffix}`;
}

export const lockChannel = (name: string): string => prefixName('redisson_lock__channel', name);
export const fairQueueKey = (name: string): string => prefixName('redisson_lock_queue', name);
export const fairTimeoutsKey = (name: string): string => prefixName('redisson_lock_timeout', name);
/** Our own, beside Redisson's two: until when each waiter of a fair lock counts as alive. */
export const fairAliveKey = (name: string): string => prefixName('holdfast_alive', name);
/** Where one waiter of a fair lock is told that it is its turn. */
export const fairChannel = (name: string, owner: string): string => `${lockChannel(name)}:${owner}`;
export const tokenKey = (name: string): string => prefixName('redisson_lock_token', name);
export const readWriteChannel = (name: string): string => prefixName('redisson_rwlock', name);
/** What the keys of all read holds begin with: text for scripts, and never a key itself. */
export const readHoldBase = (name: string): string => (name.includes('{') ? name : `{${name}}`);
/** Holds of an owner are numbered from 1. */
export const readHoldKey = (name: string, owner: string, number: number): string =>
  `${readHoldBase(name)}:${owner}:rwlock_timeout:${number}`;
export const semaphoreChannel = (name: string): string => prefixName('redisson_sc', name);
export const takenPermitsKey = (name: string): string => suffixName(name, 'timeout');
/** Redisson puts its braces around the name even when the name has some. */
export const latchChannel = (name: string): string => `redisson_countdownlatch__channel__{${name}}`;
/**
 * Our own: when a latch was last opened, in µs of the server's clock, for an hour. It lies beside the lanes. `x` and
 * `{x}` are two latches with one key of lanes, so the name follows where it has braces.
 */
export const latchOpenedKey = (name: string): string =>
  `${prefixName('holdfast_requests', name)}:opened${name.includes('{') ? `:${name}` : ''}`;
/** Lanes of one client on one object. */
export const requestsKey = (name: string, clientId: string): string =>
  `${prefixName('holdfast_requests', name)}:${clientId}`;
