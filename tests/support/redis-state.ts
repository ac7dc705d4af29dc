import type { Redis } from 'ioredis';

/** The content of one key: a hash as an object, a list from its head, a sorted set as pairs of member and score. */
export interface KeyState {
  type: string;
  value: unknown;
  /** ms; -1: no expiry. */
  pttl: number;
}

const READ = `
local found = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  local kind = redis.call('TYPE', key).ok
  local content = {}
  if kind == 'hash' then content = redis.call('HGETALL', key)
  elseif kind == 'string' then content = { redis.call('GET', key) }
  elseif kind == 'list' then content = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'zset' then
    content = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    -- Permit ids are bytes, not text.
    if string.find(key, ':timeout$') then
      for i = 1, #content, 2 do
        content[i] = 'raw:' .. string.gsub(content[i], '.', function(c) return string.format('%02x', string.byte(c)) end)
      end
    end
  end
  found[#found + 1] = { key, kind, redis.call('PTTL', key), content }
end
return found`;

/** Every key whose name begins with `prefix`, all read in one moment. */
export async function readState(redis: Redis, prefix = ''): Promise<Record<string, KeyState>> {
  const pattern = `${prefix.replace(/[\\*?[\]]/g, '\\$&')}*`;
  const found = (await redis.eval(READ, 0, pattern)) as [string, string, number, string[]][];
  return Object.fromEntries(
    found
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, type, pttl, content]) => [key, { type, value: valueOf(type, content), pttl }]),
  );
}

function valueOf(type: string, content: string[]): unknown {
  if (type === 'string') return content[0];
  if (type === 'list') return content;
  const pairs = content.flatMap((first, at) => (at % 2 === 0 ? [[first, content[at + 1]]] : []));
  return type === 'hash' ? Object.fromEntries(pairs) : pairs;
}
