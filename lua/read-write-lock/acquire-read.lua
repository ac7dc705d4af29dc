-- read-write-lock/acquire-read: takes the read half for an owner that holds nothing yet
-- KEYS[1]  lock      hash    mode -> read or write; owner -> read holds; owner:write -> write holds
-- ARGV[1]  base      string  what the keys of all read holds begin with: base:owner:rwlock_timeout:n
-- ARGV[2]  owner     string  owner id
-- ARGV[3]  lease     int     ms
-- ARGV[4]  notAfter  int     epoch ms of this server after which nothing is changed; 0 = no limit
-- Returns  nil  taken, one read hold
--          n    a writer has it, or a lock of another kind: ms until its lease ends; -1 = it has none
--          -3   too late; nothing changed
--          WRONGTYPE  the hash of this name is not a lock; nothing changed
--               an error that begins with TRYAGAIN: a slot that moves takes no new key here; nothing changed
-- Used by  src/redis/scripts/read-write-lock.ts (acquireRead)

local lock = KEYS[1]
local base, owner, lease, notAfter = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

if notAfter > 0 then
  local time = redis.call('TIME')
  if time[1] * 1000 + time[2] / 1000 > notAfter then return -3 end
end
local mode, left = redis.call('HGET', lock, 'mode'), redis.call('PTTL', lock)
-- A lock has a lease. A hash that has none, and no field with an owner in it, is not a lock.
if left == -1 and mode ~= 'read' then
  local client, isLock = string.rep('%x', 8) .. string.rep('%-%x%x%x%x', 4) .. string.rep('%x', 8), false
  for _, field in ipairs(redis.call('HKEYS', lock)) do isLock = isLock or string.find(field, client .. ':%-?%d') end
  if not isLock then return redis.error_reply('WRONGTYPE the hash of this name is not a lock') end
end
-- Without a mode it is a lock of another kind: whoever read beside its holder would take the key away when leaving.
if mode ~= 'read' and left ~= -2 then return left end
local counted = redis.call('HGET', lock, owner)
local hold = base .. ':' .. owner .. ':rwlock_timeout:1'
local ttl = redis.pcall('PTTL', hold)
-- A slot that is leaving this node refuses new keys. Where it is coming to, an earlier attempt may have left its key.
local found = ttl
if counted and ttl == -2 then found = redis.pcall('EXISTS', lock, hold) end
if type(found) == 'table' then
  if string.find(found.err, 'non local key', 1, true) then
    return redis.error_reply('TRYAGAIN the slot is moving, and a read hold cannot be added here')
  end
  -- Any other error is the error of this script.
  redis.call('PTTL', hold)
  redis.call('EXISTS', lock, hold)
end
-- The field is there when an earlier attempt ran. Nested holds may have come since: none of them is to be forgotten.
redis.call('HSET', lock, 'mode', 'read', owner, counted or '1')
-- Each read hold has a lease of its own, so that the lock can outlast whoever leaves first.
if ttl < tonumber(lease) then redis.call('SET', hold, '1', 'PX', lease) end
if left < tonumber(lease) then redis.call('PEXPIRE', lock, lease) end
return nil
