-- read-write-lock/acquire-read: takes the read half for an owner that holds nothing yet
-- KEYS[1]  lock      hash    mode -> read or write; owner -> read holds; owner:write -> write holds
-- KEYS[2]  base      string  what the keys of all read holds begin with: base:owner:rwlock_timeout:n
-- ARGV[1]  owner     string  owner id
-- ARGV[2]  lease     int     ms
-- ARGV[3]  notAfter  int     epoch ms of this server after which nothing is changed; 0 = no limit
-- Returns  nil  taken, one read hold
--          n    a writer has it, or a lock of another kind: ms until its lease ends; -1 = it has none
--          -3   too late; nothing changed
-- Used by  src/redis/scripts/read-write-lock.ts (acquireRead)

local lock, base = KEYS[1], KEYS[2]
local owner, lease, notAfter = ARGV[1], ARGV[2], tonumber(ARGV[3])

if notAfter > 0 then
  local time = redis.call('TIME')
  if time[1] * 1000 + time[2] / 1000 > notAfter then return -3 end
end
local mode, left = redis.call('HGET', lock, 'mode'), redis.call('PTTL', lock)
-- Without a mode it is a lock of another kind: whoever read beside its holder would take the key away when leaving.
if mode == 'write' or (not mode and left ~= -2) then return left end
-- The field is there when an earlier attempt ran. Nested holds may have come since: none of them is to be forgotten.
redis.call('HSET', lock, 'mode', 'read', owner, redis.call('HGET', lock, owner) or '1')
-- Each read hold has a lease of its own, so that the lock can outlast whoever leaves first.
local hold = base .. ':' .. owner .. ':rwlock_timeout:1'
if redis.call('PTTL', hold) < tonumber(lease) then redis.call('SET', hold, '1', 'PX', lease) end
if left < tonumber(lease) then redis.call('PEXPIRE', lock, lease) end
return nil
