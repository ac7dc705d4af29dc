-- lock/release-partial: releases one of several holds of an owner
-- KEYS[1]  lock      hash    owner -> hold count
-- ARGV[1]  owner     string  owner id
-- ARGV[2]  count     int     hold count after this call, at least 1; absolute, so a repeated request counts once
-- ARGV[3]  lease     int     longest remaining lease of the other holds, in ms
-- ARGV[4]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  1   held with that count
--          0   the owner no longer holds the lock; nothing changed

local lock = KEYS[1]
local owner, count, lease, notAfter = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

-- include: lib/not-after.lua
if redis.call('HEXISTS', lock, owner) == 0 then return 0 end
-- At maxmemory, Redis refuses a script whose first write needs memory. This write needs none.
redis.call('PEXPIRE', lock, lease)
redis.call('HSET', lock, owner, count)
return 1
