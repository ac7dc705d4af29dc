/**
 * Every key and channel name, as Redisson builds them. A name with a `{` anywhere is taken to carry its own hash tag.
 */
function prefixName(prefix: string, name: string): string {
  return name.includes('{') ? `${prefix}:${name}` : `${prefix}:{${name}}`;
}

export const lockChannel = (name: string): string => prefixName('redisson_lock__channel', name);
export const fairQueueKey = (name: string): string => prefixName('redisson_lock_queue', name);
export const tokenKey = (name: string): string => prefixName('redisson_lock_token', name);
