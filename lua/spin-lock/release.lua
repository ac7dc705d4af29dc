-- spin-lock/release: frees a lock that one of the given owners has, and tells nobody
-- KEYS[1]  lock  hash  owner -> hold count
-- ARGV[1..n]  owners  string  owner ids; more than one when it is unknown which of them has the lock
-- Returns  1  freed
--          0  none of them holds the lock; nothing changed
-- Used by  src/redis/scripts/spin-lock.ts (release)

local lock = KEYS[1]

local removed = 0
for i = 1, #ARGV do removed = removed + redis.call('HDEL', lock, ARGV[i]) end
if removed == 0 then return 0 end
return 1
