-- lock/hand-off: passes a lock to the next owner of the same client, or frees it if other clients wait
-- KEYS[1]  lock     hash    owner -> hold count
-- ARGV[1]   from      string  owner that has the lock
-- ARGV[2]   to        string  next owner
-- ARGV[3]   lease     int     ms for the new owner
-- ARGV[4]   publish   string  PUBLISH or SPUBLISH
-- ARGV[5]   channel   string  wake-up channel of this lock
-- ARGV[6]   ours      int     own subscribers of the channel; free the lock if other clients wait; -1 = do not check
-- ARGV[7]   waiters   string  the roll, a key of the same slot: station -> epoch ms since which it waits
-- ARGV[8]   own       string  prefix of the own channel of each client: own .. client id; '' = leave the roll alone
-- ARGV[9]   most      int     number of parked clients to wake if the lock is freed
-- ARGV[10]  station   string  that of the next waiter of this client, which is then parked; '' = do not park it
-- ARGV[11]  since     int     epoch ms since which it waits
-- ARGV[12]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  1   the next owner holds the lock, hold count 1
--          2   freed and published, because other clients wait
--          5   as 2; nobody was woken, so the next waiter is not parked: it must try
--          6   as 2; a client was woken, and Redis refused to park the next waiter: it must try soon
--          7   as 2; the roll cannot be read here: the client must send lock/wake
--          0   neither owner holds the lock; nothing changed

local lock = KEYS[1]
local from, to, lease, publish, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local ours, waiters, own, most = tonumber(ARGV[6]), ARGV[7], ARGV[8], tonumber(ARGV[9])
local station, since, notAfter = ARGV[10], ARGV[11], tonumber(ARGV[12])

-- include: lib/not-after.lua
-- A repeat writes nothing: the new lease counts from the first attempt.
if redis.call('HEXISTS', lock, to) == 1 then return 1 end
if redis.call('HEXISTS', lock, from) == 0 then return 0 end
-- include: lib/others-wait.lua (defines others)
-- include: lib/others-parked.lua
if others then
  redis.call('DEL', lock)
  local heard = redis.call(publish, channel, '0')
  if own == '' then return 2 end
  -- include: lib/tell.lua (defines tell)
  -- include: lib/wake-next.lua
  return 2
end
-- Set the new field before deleting the old one: while the slot migrates to another node, Redis refuses commands on a
-- missing key.
redis.call('HSET', lock, to, '1')
redis.call('HDEL', lock, from)
redis.call('PEXPIRE', lock, lease)
return 1
