-- lock/acquire: takes a free lock for an owner without a hold
-- KEYS[1]  lock      hash    owner -> hold count
-- ARGV[1]  owner     string  owner id
-- ARGV[2]  lease     int     ms
-- ARGV[3]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  nil  taken, hold count 1
--          n    ms until the lease of the holder ends; -1 = no expiry

local lock = KEYS[1]
local owner, lease, notAfter = ARGV[1], ARGV[2], tonumber(ARGV[3])

-- Keep the arguments as text: to turn a number back into text costs as much as the command that takes it.
-- include: lib/not-after.lua
if redis.call('EXISTS', lock) == 0 then
  redis.call('HSET', lock, owner, '1')
  redis.call('PEXPIRE', lock, lease)
  return nil
end
-- An earlier attempt of this request set the field, and its reply was lost. Keep the count, because it may already
-- count nested holds, and never shorten the lease. So a repeat has no further effect.
if redis.call('HEXISTS', lock, owner) == 1 then
  if redis.call('PTTL', lock) < tonumber(lease) then redis.call('PEXPIRE', lock, lease) end
  return nil
end
local left = redis.call('PTTL', lock)
-- include: lib/foreign-hash.lua
return left
