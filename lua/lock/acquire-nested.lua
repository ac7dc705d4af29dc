-- lock/acquire-nested: adds a hold to a lock that the owner holds
-- KEYS[1]  lock      hash    owner -> hold count
-- ARGV[1]  owner     string  owner id
-- ARGV[2]  count     int     hold count after this call; absolute, so a repeated request counts once
-- ARGV[3]  lease     int     ms
-- ARGV[4]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  1   held with that count
--          0   the owner no longer holds the lock; nothing changed

local lock = KEYS[1]
local owner, count, lease, notAfter = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

-- include: lib/not-after.lua
-- Never create the field: a nested call must not restore a lost lock.
if redis.call('HEXISTS', lock, owner) == 0 then return 0 end
local left = redis.call('PTTL', lock)
redis.call('HSET', lock, owner, count)
if left >= 0 and left < tonumber(lease) then redis.call('PEXPIRE', lock, lease) end
return 1
