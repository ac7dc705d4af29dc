import type { Redis } from 'ioredis';

export interface KeyState {
  readonly type: string;
  readonly value: unknown;
  readonly pttl: number;
}

const READ = `
local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local content = {}
  if kind == 'hash' then content = redis.call('HGETALL', key)
  elseif kind == 'string' then content = { redis.call('GET', key) }
  elseif kind == 'list' then content = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'zset' then content = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end
  found[#found + 1] = { key, kind, redis.call('PTTL', key), content }
end
return found`;

/** Latches, lanes and rolls are each kind's own affair: see the table of differences. */
const OWN_AFFAIR = /^(redisson_unlock_latch|holdfast_requests|holdfast_alive|holdfast_waiters):/;

/** The keys of both kinds, read in one moment. Members of a set of permits are bytes, and come as hex. */
export async function readBoth(redis: Redis): Promise<[string, KeyState][]> {
  const found = (await redis.callBuffer('EVAL', READ, 0)) as [Buffer, Buffer, number, Buffer[]][];
  return found
    .map(([key, type, pttl, content]): [string, KeyState] => [
      key.toString(),
      { type: type.toString(), value: valueOf(key.toString(), type.toString(), content), pttl },
    ])
    .filter(([key]) => !OWN_AFFAIR.test(key))
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

function valueOf(key: string, type: string, content: Buffer[]): unknown {
  const text = content.map((each) => each.toString());
  if (type === 'string') return text[0];
  if (type === 'list') return text;
  const pairs = text.flatMap((first, at) => (at % 2 === 0 ? [[first, text[at + 1]] as const] : []));
  if (type === 'hash') return Object.fromEntries(pairs);
  const member = (at: number): string => (key.endsWith(':timeout') ? content[2 * at]!.toString('hex') : pairs[at]![0]);
  return pairs.map(([, score], at) => [member(at), Number(score)]);
}
