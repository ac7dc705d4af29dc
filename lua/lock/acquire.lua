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
-- include: lib/not-after.lua
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
-- include: lib/foreign-hash.lua
return left
