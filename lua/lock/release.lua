-- lock/release: frees a lock that one of the given owners has, and wakes a waiter
-- KEYS[1]  lock     hash    owner -> hold count
-- ARGV[1]     publish  string  PUBLISH or SPUBLISH
-- ARGV[2]     channel  string  wake-up channel of this lock
-- ARGV[3..n]  owners   string  owner ids; several if the client does not know which of them has the lock
-- Returns  1  freed and published
--          0  none of them holds the lock; nothing changed

local lock = KEYS[1]
local publish, channel = ARGV[1], ARGV[2]

-- Use one command: while the slot migrates to another node, Redis refuses a second command on a key that the first one
-- has emptied.
if redis.call('HDEL', lock, unpack(ARGV, 3)) == 0 then return 0 end
redis.call(publish, channel, '0')
return 1
