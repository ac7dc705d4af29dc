/* Derives the names of objects from the keys and channels of a server. */
import { ROLLS } from '../redis/keys.js';
import { escapeGlob } from './glob.js';

/** One series of SCAN pages. */
export interface Scan {
  readonly type: 'hash' | 'zset';
  readonly pattern: string;
}

/**
 * The scans that find every name. A hash is a lock, or the request lanes of a semaphore or latch. A sorted set has the
 * taken permits of a semaphore, or the waiters of a fair lock. The string of a semaphore or latch looks like every
 * other number, so strings are not scanned.
 */
export function scansFor(keyPrefix: string, match: string): Scan[] {
  const names = escapeGlob(keyPrefix) + match;
  const hashes = names === '*' ? ['*'] : [names, `${LANES}*`];
  return [
    ...hashes.map((pattern) => ({ type: 'hash' as const, pattern })),
    // Both kinds of sorted sets in one scan: most of the cost of a scan is the keys that it passes.
    { type: 'zset', pattern: '*timeout*' },
  ];
}

const SEMAPHORE_CHANNEL = 'redisson_sc:';
const LANES = 'holdfast_requests:';
const TAKEN_PERMITS = ':timeout';
const FAIR_TIMEOUTS = 'redisson_lock_timeout:';
const UUID = /:[\da-f]{8}(?:-[\da-f]{4}){4}[\da-f]{8}$/i;

/** The keys of the objects that a scanned key may belong to. */
export function keysMeantBy(key: string, type: Scan['type']): string[] {
  if (type === 'zset') {
    // The key of a roll ends in the name of its lock, if the name has braces.
    if (key.startsWith(`${ROLLS}:`)) return [];
    if (key.startsWith(FAIR_TIMEOUTS)) return unprefixed(key.slice(FAIR_TIMEOUTS.length));
    const inner = key.endsWith(TAKEN_PERMITS) ? key.slice(0, -TAKEN_PERMITS.length) : '';
    return inner.includes('{') ? unprefixed(inner) : [];
  }
  if (!key.startsWith(LANES)) return [key];
  return UUID.test(key) ? unprefixed(key.slice(LANES.length).replace(UUID, '')) : [];
}

/** The patterns of the channels on which calls wait for a semaphore or latch. */
export const WAITING_PATTERNS: readonly string[] = [`${SEMAPHORE_CHANNEL}*`, 'redisson_countdownlatch__channel__*'];

/** The keys of the semaphores and latches that may have this channel. */
export function keysOfChannel(channel: string): string[] {
  const ofLatch = /^redisson_countdownlatch__channel__\{(.+)\}$/s.exec(channel)?.[1];
  if (ofLatch !== undefined) return [ofLatch];
  return channel.startsWith(SEMAPHORE_CHANNEL) ? unprefixed(channel.slice(SEMAPHORE_CHANNEL.length)) : [];
}

/** The keys whose derived names contain this part. Braces in it belong to the key or were added around the key. */
function unprefixed(part: string): string[] {
  const inner = /^\{(.+)\}$/s.exec(part)?.[1];
  const around = inner === undefined || inner.includes('{') ? [] : [inner];
  return [...around, ...(part.includes('{') ? [part] : [])];
}
