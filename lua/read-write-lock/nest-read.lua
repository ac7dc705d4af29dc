-- read-write-lock/nest-read: adds a read hold to the holds that the owner has, of either half
-- KEYS[1]  lock      hash    mode -> read or write; owner -> read holds; owner:write -> write holds
-- ARGV[1]  base      string  prefix of the keys of all read holds: base:owner:rwlock_timeout:n
-- ARGV[2]  owner     string  owner id
-- ARGV[3]  count     int     read holds after this call; absolute, so a repeated request counts once
-- ARGV[4]  lease     int     ms
-- ARGV[5]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  1   held
--          0   the owner no longer holds the lock; nothing changed
--              an error that begins with TRYAGAIN: this node accepts no new key of the migrating slot; nothing changed

local lock = KEYS[1]
local base, owner, count, lease, notAfter = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])

-- include: lib/not-after.lua
if redis.call('HEXISTS', lock, owner) + redis.call('HEXISTS', lock, owner .. ':write') == 0 then return 0 end
local left = redis.call('PTTL', lock)
local counted = tonumber(redis.call('HGET', lock, owner) or '0')
local hold = base .. ':' .. owner .. ':rwlock_timeout:' .. count
local ttl = redis.pcall('PTTL', hold)
-- The old node of a migrating slot refuses new keys. At the new node, a hold that is counted may have a key.
local found = ttl
if ttl == -2 and counted >= tonumber(count) then found = redis.pcall('EXISTS', lock, hold) end
-- include: lib/read-hold-addable.lua
-- include: lib/read-hold-drop.lua (defines drop)
-- The caller may have released some holds with a request that has not arrived yet. Leave no key that the count does not
-- cover.
for i = count + 1, counted do drop(base .. ':' .. owner .. ':rwlock_timeout:' .. i) end
redis.call('HSET', lock, owner, count)
if ttl < tonumber(lease) then redis.call('SET', hold, '1', 'PX', lease) end
if left >= 0 and left < tonumber(lease) then redis.call('PEXPIRE', lock, lease) end
return 1
