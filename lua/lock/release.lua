-- lock/release: frees a lock that one of the given owners has, and wakes a waiter
-- KEYS[1]  lock     hash    owner -> hold count
-- ARGV[1]     publish  string  PUBLISH or SPUBLISH
-- ARGV[2]     channel  string  wake-up channel of this lock
-- ARGV[3]     ours     int     own subscribers of the channel; -1 = those of other clients do not matter
-- ARGV[4]     waiters  string  the roll, a key of the same slot: station -> epoch ms since which it waits
-- ARGV[5]     own      string  prefix of the own channel of each client: own .. client id; '' = leave the roll alone
-- ARGV[6]     most     int     number of parked clients to wake
-- ARGV[7]     station  string  that of the next waiter of this client, which is parked; '' = none waits
-- ARGV[8]     since    int     epoch ms since which it waits
-- ARGV[9..n]  owners   string  owner ids; several if the client does not know which of them has the lock
-- Returns  1  freed and published
--          5  freed and published; nobody was woken, so the next waiter is not parked: it must try
--          6  freed and published; a client was woken, and Redis refused to park the next waiter: it must try soon
--          7  freed and published; the roll cannot be read here: the client must send lock/wake
--          0  none of them holds the lock; nothing changed

local lock = KEYS[1]
local publish, channel, ours, waiters, own = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local most, station, since = tonumber(ARGV[6]), ARGV[7], ARGV[8]

-- Use one command: while the slot migrates to another node, Redis refuses a second command on a key that the first one
-- has emptied. A repeat ends here, so it wakes nobody a second time.
if redis.call('HDEL', lock, unpack(ARGV, 9)) == 0 then return 0 end
local heard = redis.call(publish, channel, '0')
if own == '' then return 1 end
-- include: lib/tell.lua (defines tell)
-- include: lib/wake-next.lua
return 1
