-- spin-lock/release: frees a lock that one of the given owners has, without a message
-- KEYS[1]  lock  hash  owner -> hold count
-- ARGV[1..n]  owners  string  owner ids; more than one when it is unknown which of them has the lock
-- Returns  1  freed
--          0  none of them holds the lock; nothing changed
-- Used by  src/redis/scripts/spin-lock.ts (release)

local lock = KEYS[1]

-- In one command: where a slot is leaving this node, a second one would not find the key that the first has emptied.
if redis.call('HDEL', lock, unpack(ARGV)) == 0 then return 0 end
return 1
