-- lock/hand-off: passes a lock to the next owner of the same client, or frees it if other clients wait
-- KEYS[1]  lock     hash    owner -> hold count
-- ARGV[1]  from      string  owner that has the lock
-- ARGV[2]  to        string  next owner
-- ARGV[3]  lease     int     ms for the new owner
-- ARGV[4]  publish   string  PUBLISH or SPUBLISH
-- ARGV[5]  channel   string  wake-up channel of this lock
-- ARGV[6]  ours      int     own subscribers of the channel; free the lock if there are more; -1 = do not check
-- ARGV[7]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  1   the next owner holds the lock, hold count 1
--          2   freed and published, because other clients wait
--          0   neither owner holds the lock; nothing changed

local lock = KEYS[1]
local from, to, lease, publish, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local ours, notAfter = tonumber(ARGV[6]), tonumber(ARGV[7])

-- include: lib/not-after.lua
-- A repeat writes nothing: the new lease counts from the first attempt.
if redis.call('HEXISTS', lock, to) == 1 then return 1 end
if redis.call('HEXISTS', lock, from) == 0 then return 0 end
-- include: lib/others-wait.lua (defines others)
if others then
  redis.call('DEL', lock)
  redis.call(publish, channel, '0')
  return 2
end
-- Set the new field before deleting the old one: while the slot migrates to another node, Redis refuses commands on a
-- missing key.
redis.call('HSET', lock, to, '1')
redis.call('HDEL', lock, from)
redis.call('PEXPIRE', lock, lease)
return 1
