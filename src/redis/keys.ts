/*
 * Every key and channel name, as Redisson builds them. Redisson assumes that a name with a `{` contains its own hash
 * tag.
 */
function prefixName(prefix: string, name: string): string {
  return name.includes('{') ? `${prefix}:${name}` : `${prefix}:{${name}}`;
}

function suffixName(name: string, suffix: string): string {
  return name.includes('{') ? `${name}:${suffix}` : `{${name}}:${suffix}`;
}

/** What the key of every roll begins with. */
export const ROLLS = 'holdfast_waiters';

export const lockChannel = (name: string): string => prefixName('redisson_lock__channel', name);
export const fairQueueKey = (name: string): string => prefixName('redisson_lock_queue', name);
export const fairTimeoutsKey = (name: string): string => prefixName('redisson_lock_timeout', name);
/** Not a key of Redisson. Stores the time until which each waiter of a fair lock counts as alive. */
export const fairAliveKey = (name: string): string => prefixName('holdfast_alive', name);
/** The channel on which one waiter of a fair lock learns that its turn has come. */
export const fairChannel = (name: string, owner: string): string => `${lockChannel(name)}:${owner}`;
export const tokenKey = (name: string): string => prefixName('redisson_lock_token', name);
/**
 * Not a key of Redisson. The roll of the clients that are parked until a lock is free. The locks `x` and `{x}` share one
 * slot, so the key ends in the name if the name has braces: the two locks need two rolls.
 */
export const rollKey = (name: string): string =>
  `${prefixName(ROLLS, name)}:lock${name.includes('{') ? `:${name}` : ''}`;
export const readWriteChannel = (name: string): string => prefixName('redisson_rwlock', name);
/** The prefix of the keys of all read holds. Scripts append to it. It is never a key itself. */
export const readHoldBase = (name: string): string => (name.includes('{') ? name : `{${name}}`);
/** The key of one read hold. The holds of an owner are numbered from 1. */
export const readHoldKey = (name: string, owner: string, number: number): string =>
  `${readHoldBase(name)}:${owner}:rwlock_timeout:${number}`;
export const semaphoreChannel = (name: string): string => prefixName('redisson_sc', name);
export const takenPermitsKey = (name: string): string => suffixName(name, 'timeout');
/** For a latch, Redisson adds braces even if the name contains braces. */
export const latchChannel = (name: string): string => `redisson_countdownlatch__channel__{${name}}`;
/**
 * Not a key of Redisson. Stores the time at which a latch was last opened, in µs of the server's clock, and expires
 * after one hour. The key is in the slot of the lanes. The latches `x` and `{x}` share one key of lanes, so the key
 * ends in the name if the name has braces: the two latches need two opening times.
 */
export const latchOpenedKey = (name: string): string =>
  `${prefixName('holdfast_requests', name)}:opened${name.includes('{') ? `:${name}` : ''}`;
/** The request lanes of one client on one object. */
export const requestsKey = (name: string, clientId: string): string =>
  `${prefixName('holdfast_requests', name)}:${clientId}`;
