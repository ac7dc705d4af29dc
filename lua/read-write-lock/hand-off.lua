-- read-write-lock/hand-off: passes the write half to the next writer of this client, or frees it if others wait
-- KEYS[1]  lock      hash    mode -> read or write; owner -> read holds; owner:write -> write holds
-- ARGV[1]  base      string  prefix of the keys of all read holds: base:owner:rwlock_timeout:n
-- ARGV[2]  from      string  current writer, which releases all its holds of both halves
-- ARGV[3]  to        string  next writer
-- ARGV[4]  lease     int     ms for the new owner
-- ARGV[5]  publish   string  PUBLISH or SPUBLISH
-- ARGV[6]  channel   string  wake-up channel of both halves
-- ARGV[7]  ours      int     own subscribers of the channel; free the lock if there are more; -1 = do not check
-- ARGV[8]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  1   the next writer holds the lock, one write hold
--          2   freed and published, because other clients wait
--          0   neither owner has the write half; nothing changed

local lock = KEYS[1]
local base, from, to, lease, publish, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local ours, notAfter = tonumber(ARGV[7]), tonumber(ARGV[8])

-- include: lib/not-after.lua
local writer, successor = from .. ':write', to .. ':write'
-- A repeat writes nothing: the new lease counts from the first attempt.
if redis.call('HEXISTS', lock, successor) == 1 then return 1 end
if redis.call('HEXISTS', lock, writer) == 0 then return 0 end
-- include: lib/read-hold-drop.lua (defines drop)
-- A writer with read holds releases them, too. No other owner has a read hold beside a writer.
for i = 1, tonumber(redis.call('HGET', lock, from) or '0') do
  drop(base .. ':' .. from .. ':rwlock_timeout:' .. i)
end
-- include: lib/others-wait.lua (defines others)
if others then
  redis.call('DEL', lock)
  redis.call(publish, channel, '1')
  return 2
end
-- Set the new field before deleting the old one: while the slot migrates to another node, Redis refuses commands on a
-- missing key.
redis.call('HSET', lock, 'mode', 'write', successor, '1')
redis.call('HDEL', lock, writer, from)
redis.call('PEXPIRE', lock, lease)
return 1
