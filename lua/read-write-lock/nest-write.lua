-- read-write-lock/nest-write: adds a write hold to the write holds that the owner has
-- KEYS[1]  lock      hash    mode -> read or write; owner -> read holds; owner:write -> write holds
-- ARGV[1]  writer    string  owner id followed by :write
-- ARGV[2]  count     int     write holds after this call; absolute, so a repeated request counts once
-- ARGV[3]  lease     int     ms
-- ARGV[4]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  1   held
--          0   the owner no longer holds the write half; nothing changed

local lock = KEYS[1]
local writer, count, lease, notAfter = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

-- include: lib/not-after.lua
if redis.call('HEXISTS', lock, writer) == 0 then return 0 end
local left = redis.call('PTTL', lock)
redis.call('HSET', lock, writer, count)
if left >= 0 and left < tonumber(lease) then redis.call('PEXPIRE', lock, lease) end
return 1
