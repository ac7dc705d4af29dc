import type { MonitorLine } from '../servers/monitor-log.js';

/**
 * Reads the arrivals in the queue and the grants from the commands of the server. A granted owner must be the head of
 * the queue, or the queue must be empty, and an owner in the queue leaves it with its grant.
 */
export function fairOrder(lines: readonly MonitorLine[], name: string): { violations: string[]; granted: string[] } {
  const queueKey = `redisson_lock_queue:{${name}}`;
  const queue: string[] = [];
  const violations: string[] = [];
  const granted: string[] = [];
  let holder: string | undefined;
  // An acquire pops the head before it sets the field, so the head before the script counts. A hand-over sets the field
  // first, and removes that of the old holder.
  let popped: string | undefined;
  for (const { command, args, source } of lines) {
    if (source !== 'lua') {
      if (popped !== undefined) violations.push(`${popped} left the queue without the lock`);
      popped = undefined;
      continue;
    }
    const [key, first = '', second = ''] = args;
    if (key === queueKey && command === 'RPUSH') queue.push(first);
    else if (key === queueKey && command === 'LPOP') {
      const head = queue.shift();
      if (head !== holder) popped = head;
    } else if (key === queueKey && command === 'LREM') {
      const at = queue.indexOf(second);
      if (at >= 0) popped = queue.splice(at, 1)[0];
    } else if (
      key === name &&
      (command === 'HSET' || command === 'HINCRBY') &&
      Number(second) > 0 &&
      first !== holder
    ) {
      const due = popped ?? queue[0];
      if (due !== undefined && due !== first) violations.push(`${first} was granted the lock before ${due}`);
      holder = first;
      popped = undefined;
      granted.push(first);
    } else if (key === name && command === 'DEL') holder = undefined;
    else if (key === name && command === 'HDEL' && args.slice(1).includes(holder ?? '')) holder = undefined;
  }
  if (queue.length > 0) violations.push(`still queued: ${queue.join(', ')}`);
  return { violations, granted };
}
