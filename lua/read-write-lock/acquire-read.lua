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

-- include: lib/not-after.lua
local mode, left = redis.call('HGET', lock, 'mode'), redis.call('PTTL', lock)
-- include: lib/foreign-hash.lua
-- Without a mode it is a lock of another kind: a reader beside its holder would delete the key when it leaves.
if mode ~= 'read' and left ~= -2 then return left end
local counted = redis.call('HGET', lock, owner)
local hold = base .. ':' .. owner .. ':rwlock_timeout:1'
local ttl = redis.pcall('PTTL', hold)
-- A slot that is leaving this node refuses new keys. Where it is coming to, an earlier attempt may have left its key.
local found = ttl
if counted and ttl == -2 then found = redis.pcall('EXISTS', lock, hold) end
-- include: lib/read-hold-addable.lua
-- The field is there when an earlier attempt ran. Nested holds may have come since: none of them is to be forgotten.
redis.call('HSET', lock, 'mode', 'read', owner, counted or '1')
-- Each read hold has a lease of its own, so that the lock can outlast the reader that leaves first.
if ttl < tonumber(lease) then redis.call('SET', hold, '1', 'PX', lease) end
if left < tonumber(lease) then redis.call('PEXPIRE', lock, lease) end
return nil
