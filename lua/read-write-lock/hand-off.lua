-- read-write-lock/hand-off: gives the write half straight to the next writer of the same client, or frees it
-- KEYS[1]  lock      hash    mode -> read or write; owner -> read holds; owner:write -> write holds
-- ARGV[1]  base      string  what the keys of all read holds begin with: base:owner:rwlock_timeout:n
-- ARGV[2]  from      string  owner that gives everything back that it has, of either half
-- ARGV[3]  to        string  owner that gets the write half
-- ARGV[4]  lease     int     ms for the new owner
-- ARGV[5]  publish   string  PUBLISH or SPUBLISH
-- ARGV[6]  channel   string  wake-up channel of both halves
-- ARGV[7]  ours      int     free the lock if the channel has more subscribers than this; -1 = do not ask
-- ARGV[8]  notAfter  int     epoch ms of this server after which nothing is changed; 0 = no limit
-- Returns  1   the next owner holds it, one write hold
--          2   freed and published, because others wait
--          0   neither owner has the write half; nothing changed
--          -3  too late; nothing changed
-- Used by  src/redis/scripts/read-write-lock.ts (handOff)

local lock = KEYS[1]
local base, from, to, lease, publish, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local ours, notAfter = tonumber(ARGV[7]), tonumber(ARGV[8])

-- include: lib/not-after.lua
local writer, heir = from .. ':write', to .. ':write'
-- A repeat writes nothing, so the new lease counts from the first attempt.
if redis.call('HEXISTS', lock, heir) == 1 then return 1 end
if redis.call('HEXISTS', lock, writer) == 0 then return 0 end
-- include: lib/read-hold-drop.lua
-- A writer that reads as well releases its read holds with it. No other owner reads beside a writer.
for i = 1, tonumber(redis.call('HGET', lock, from) or '0') do
  drop(base .. ':' .. from .. ':rwlock_timeout:' .. i)
end
-- include: lib/others-wait.lua
if others then
  redis.call('DEL', lock)
  redis.call(publish, channel, '1')
  return 2
end
-- Never without the key in between: a slot that is leaving this node would send what comes next elsewhere.
redis.call('HSET', lock, 'mode', 'write', heir, '1')
redis.call('HDEL', lock, writer, from)
redis.call('PEXPIRE', lock, lease)
return 1
