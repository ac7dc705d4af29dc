-- lock/leave: takes a client that no longer waits off the roll, and passes on what it was told
-- KEYS[1]  waiters   zset    the roll: station -> epoch ms since which it waits
-- ARGV[1]  lock      string  the lock, a key of the same slot
-- ARGV[2]  publish   string  PUBLISH or SPUBLISH
-- ARGV[3]  own       string  prefix of the own channel of each client: own .. client id
-- ARGV[4]  station   string  that of the client
-- ARGV[5]  duty      int     1 = the client was on duty, or was woken; 0 = it was not
-- ARGV[6]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  1   the client is not in the roll
--          -1  Redis refuses the roll
--          -2  the client is not in the roll of this node; the slot migrates, and the client must send lock/wake

local waiters = KEYS[1]
local lock, publish, own, station, duty, notAfter = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])

-- include: lib/not-after.lua
local removed = redis.pcall('ZREM', waiters, station)
-- include: lib/tell.lua (defines tell)
-- While the slot migrates, the lock may be at the other node. To wake a client too many costs one try.
local told = 0
if redis.pcall('EXISTS', lock) ~= 1 then
  told = tell('1', 1)
  if told > 0 then tell('2', 1) end
elseif duty == '1' then
  -- Two: the first of them may have died in silence.
  told = tell('2', 2)
end
if told == -2 then return -2 end
if told == -1 or type(removed) ~= 'number' then return -1 end
return 1
