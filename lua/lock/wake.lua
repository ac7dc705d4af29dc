-- lock/wake: wakes parked clients after a release that could not
-- KEYS[1]  waiters  zset    the roll: station -> epoch ms since which it waits
-- ARGV[1]  lock     string  the lock, a key of the same slot
-- ARGV[2]  publish  string  PUBLISH or SPUBLISH
-- ARGV[3]  own      string  prefix of the own channel of each client: own .. client id
-- ARGV[4]  most     int     number of clients to wake if the lock is free
-- Returns  n   number of clients that were woken
--          -1  Redis refuses the roll
--          -2  none of this node: the slot migrates, and the client must send this again

local waiters = KEYS[1]
local lock, publish, own, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

-- include: lib/tell.lua (defines tell)
local woken = 0
-- While the slot migrates, the lock may be at the other node. To wake a client too many costs one try.
if redis.pcall('EXISTS', lock) ~= 1 then woken = tell('1', most) end
-- If the lock is held again, a parked client has to learn of the new hold.
tell('2', 1)
if woken == -1 then return -1 end
if woken == -2 then return -2 end
return woken
