import type { Redis } from 'ioredis';
import { fairChannel, fairQueueKey, fairTimeoutsKey } from '../../../src/redis/keys.js';

/* The fair lock of Redisson by the wire document: it uses its own clock and does not know which waiters are alive. */

const SWEEP = `
while true do
  local head = redis.call('LINDEX', KEYS[2], 0)
  local score = head and redis.call('ZSCORE', KEYS[3], head)
  if not score or tonumber(score) > tonumber(ARGV[2]) then break end
  redis.call('ZREM', KEYS[3], head)
  redis.call('LPOP', KEYS[2])
end`;

const ACQUIRE = `${SWEEP}
local head = redis.call('LINDEX', KEYS[2], 0)
if redis.call('EXISTS', KEYS[1]) == 0 and (not head or head == ARGV[1]) then
  redis.call('LPOP', KEYS[2])
  redis.call('ZREM', KEYS[3], ARGV[1])
  for _, each in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do redis.call('ZINCRBY', KEYS[3], -ARGV[3], each) end
  redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  return 1
end
if redis.call('ZSCORE', KEYS[3], ARGV[1]) then return 0 end
local tail = redis.call('LINDEX', KEYS[2], -1)
local score = tail and redis.call('ZSCORE', KEYS[3], tail)
local ttl = score and (score - ARGV[2]) or redis.call('PTTL', KEYS[1])
if redis.call('ZADD', KEYS[3], ttl + ARGV[3] + ARGV[2], ARGV[1]) == 1 then redis.call('RPUSH', KEYS[2], ARGV[1]) end
return 0`;

const RELEASE = `${SWEEP}
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then return '' end
return redis.call('LINDEX', KEYS[2], 0) or ''`;

export interface JvmOptions {
  /** ms by which its clock is ahead of this machine's. */
  aheadMs?: number;
  /** ms; as `fairLockWaitTimeout`, or the wait of its call. */
  waitMs?: number;
}

export class JvmWaiter {
  readonly owner = '8743c9c0-0795-4907-87fd-6c719a6b4586:52';

  constructor(
    private readonly redis: Redis,
    private readonly name: string,
    private readonly options: JvmOptions = {},
  ) {}

  /** Takes the lock if it is its turn, else queues. */
  async tryOrQueue(leaseMs = 30_000): Promise<boolean> {
    const { waitMs = 300_000 } = this.options;
    return (await this.#run(ACQUIRE, waitMs, leaseMs)) === 1;
  }

  async release(): Promise<void> {
    const head = (await this.#run(RELEASE)) as string;
    if (head !== '') await this.redis.publish(fairChannel(this.name, head), '0');
  }

  #run(script: string, ...args: number[]): Promise<unknown> {
    const keys = [this.name, fairQueueKey(this.name), fairTimeoutsKey(this.name)];
    const now = Date.now() + (this.options.aheadMs ?? 0);
    return this.redis.eval(script, keys.length, ...keys, this.owner, now, ...args);
  }
}
