-- read-write-lock/acquire-write: takes the write half for an owner without a hold
-- KEYS[1]  lock      hash    mode -> read or write; owner -> read holds; owner:write -> write holds
-- ARGV[1]  writer    string  owner id followed by :write
-- ARGV[2]  lease     int     ms
-- ARGV[3]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  nil  taken, one write hold
--          n    other owners have the lock: ms until their lease ends; -1 = no expiry

local lock = KEYS[1]
local writer, lease, notAfter = ARGV[1], ARGV[2], tonumber(ARGV[3])

-- include: lib/not-after.lua
local held = redis.call('EXISTS', lock) == 1
if held and redis.call('HEXISTS', lock, writer) == 0 then
  local left = redis.call('PTTL', lock)
  -- include: lib/foreign-hash.lua
  return left
end
-- On a repeat, the field may already count nested holds.
if not held then redis.call('HSET', lock, 'mode', 'write', writer, '1') end
if redis.call('PTTL', lock) < tonumber(lease) then redis.call('PEXPIRE', lock, lease) end
return nil
