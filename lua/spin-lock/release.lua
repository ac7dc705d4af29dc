-- spin-lock/release: frees a lock that one of the given owners has, without a message
-- KEYS[1]  lock  hash  owner -> hold count
-- ARGV[1..n]  owners  string  owner ids; several if the client does not know which of them has the lock
-- Returns  1  freed
--          0  none of them holds the lock; nothing changed

local lock = KEYS[1]

-- Use one command: while the slot migrates to another node, Redis refuses a second command on a key that the first one
-- has emptied.
if redis.call('HDEL', lock, unpack(ARGV)) == 0 then return 0 end
return 1
