-- read-write-lock/acquire-read: takes the read half for an owner without a hold
-- KEYS[1]  lock      hash    mode -> read or write; owner -> read holds; owner:write -> write holds
-- ARGV[1]  base      string  prefix of the keys of all read holds: base:owner:rwlock_timeout:n
-- ARGV[2]  owner     string  owner id
-- ARGV[3]  lease     int     ms
-- ARGV[4]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  nil  taken, one read hold
--          n    a writer or another kind of lock has the name: ms until its lease ends; -1 = no expiry
--               an error that begins with TRYAGAIN: this node accepts no new key of the migrating slot; nothing changed

local lock = KEYS[1]
local base, owner, lease, notAfter = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

-- include: lib/not-after.lua
local mode, left = redis.call('HGET', lock, 'mode'), redis.call('PTTL', lock)
-- include: lib/foreign-hash.lua
-- A hash without a mode is another kind of lock. A reader in it would delete the key of the holder with its release.
if mode ~= 'read' and left ~= -2 then return left end
local counted = redis.call('HGET', lock, owner)
local hold = base .. ':' .. owner .. ':rwlock_timeout:1'
local ttl = redis.pcall('PTTL', hold)
-- The old node of a migrating slot refuses new keys. At the new node, an earlier attempt may have left its key.
local found = ttl
if counted and ttl == -2 then found = redis.pcall('EXISTS', lock, hold) end
-- include: lib/read-hold-addable.lua
-- An earlier attempt has set the field. Keep its count: nested holds may have been added since.
redis.call('HSET', lock, 'mode', 'read', owner, counted or '1')
-- Each read hold has its own lease, so that the lock stays held when the first reader releases it.
if ttl < tonumber(lease) then redis.call('SET', hold, '1', 'PX', lease) end
if left < tonumber(lease) then redis.call('PEXPIRE', lock, lease) end
return nil
