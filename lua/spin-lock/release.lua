-- spin-lock/release: frees a lock that one of the given owners has, without a message of Redisson
-- KEYS[1]  lock  hash  owner -> hold count
-- ARGV[1]     publish  string  PUBLISH or SPUBLISH
-- ARGV[2]     waiters  string  the roll, a key of the same slot: station -> epoch ms since which it waits
-- ARGV[3]     own      string  prefix of the own channel of each client: own .. client id; '' = leave the roll alone
-- ARGV[4..n]  owners   string  owner ids; several if the client does not know which of them has the lock
-- Returns  1  freed
--          7  freed; the roll cannot be read here: the client must send lock/wake
--          0  none of them holds the lock; nothing changed

local lock = KEYS[1]
local publish, waiters, own = ARGV[1], ARGV[2], ARGV[3]

-- Use one command: while the slot migrates to another node, Redis refuses a second command on a key that the first one
-- has emptied.
if redis.call('HDEL', lock, unpack(ARGV, 4)) == 0 then return 0 end
if own == '' then return 1 end
-- The waiters of spin locks poll. The clients that are parked wait for the lock in another way.
-- include: lib/tell.lua (defines tell)
local woken = tell('1', 1)
if woken < 0 then return 7 end
if woken > 0 then tell('2', 1) end
return 1
