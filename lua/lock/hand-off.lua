-- lock/hand-off: gives a lock straight to the next owner of the same client, or frees it where others wait too
-- KEYS[1]  lock     hash    owner -> hold count
-- ARGV[1]  from      string  owner that gives the lock
-- ARGV[2]  to        string  owner that gets it
-- ARGV[3]  lease     int     ms for the new owner
-- ARGV[4]  publish   string  PUBLISH or SPUBLISH
-- ARGV[5]  channel   string  wake-up channel of this lock
-- ARGV[6]  ours      int     free the lock if the channel has more subscribers than this; -1 = do not ask
-- ARGV[7]  notAfter  int     epoch ms of this server after which nothing is changed; 0 = no limit
-- Returns  1   the next owner holds it, hold count 1
--          2   freed and published, because others wait at other clients
--          0   neither owner holds it; nothing changed
--          -3  too late; nothing changed
-- Used by  src/redis/scripts/lock.ts (handOff)

local lock = KEYS[1]
local from, to, lease, publish, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local ours, notAfter = tonumber(ARGV[6]), tonumber(ARGV[7])

-- include: lib/not-after.lua
-- A repeat writes nothing, so the new lease counts from the first attempt.
if redis.call('HEXISTS', lock, to) == 1 then return 1 end
if redis.call('HEXISTS', lock, from) == 0 then return 0 end
-- include: lib/others-wait.lua
if others then
  redis.call('DEL', lock)
  redis.call(publish, channel, '0')
  return 2
end
-- Never without the key in between: a slot that is leaving this node would send what comes next elsewhere.
redis.call('HSET', lock, to, '1')
redis.call('HDEL', lock, from)
redis.call('PEXPIRE', lock, lease)
return 1
