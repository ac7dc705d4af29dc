-- lock/acquire: takes a free lock for an owner that holds nothing yet
-- KEYS[1]  lock      hash    owner -> hold count
-- ARGV[1]  owner     string  owner id
-- ARGV[2]  lease     int     ms
-- ARGV[3]  notAfter  int     epoch ms of this server after which nothing is changed; 0 = no limit
-- Returns  nil  taken, hold count 1
--          n    ms until the holder's lease ends; -1 = it has none
--          -3   too late; nothing changed
--          WRONGTYPE  the hash of this name is not a lock; nothing changed
-- Used by  src/redis/scripts/lock.ts (acquire)

local lock = KEYS[1]
local owner, lease, notAfter = ARGV[1], ARGV[2], tonumber(ARGV[3])

-- Arguments stay text: turning a number back into text costs as much as the command that gets it.
if notAfter > 0 then
  local time = redis.call('TIME')
  if time[1] * 1000 + time[2] / 1000 > notAfter then return -3 end
end
if redis.call('EXISTS', lock) == 0 then
  redis.call('HSET', lock, owner, '1')
  redis.call('PEXPIRE', lock, lease)
  return nil
end
-- The field is there when an earlier attempt of this request ran and its reply was lost: the count, which may be that of
-- nested holds by now, stays as it is, and the lease is never shortened, so running twice is running once.
if redis.call('HEXISTS', lock, owner) == 1 then
  if redis.call('PTTL', lock) < tonumber(lease) then redis.call('PEXPIRE', lock, lease) end
  return nil
end
local left = redis.call('PTTL', lock)
-- A lock has a lease. A hash that has none, and no field with an owner in it, is not a lock.
if left == -1 then
  local client, isLock = string.rep('%x', 8) .. string.rep('%-%x%x%x%x', 4) .. string.rep('%x', 8), false
  for _, field in ipairs(redis.call('HKEYS', lock)) do isLock = isLock or string.find(field, client .. ':%-?%d') end
  if not isLock then return redis.error_reply('WRONGTYPE the hash of this name is not a lock') end
end
return left
