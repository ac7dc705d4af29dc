-- read-write-lock/renew-key: extends the lease of one key of a hold, for a migrating slot with keys at two nodes
-- KEYS[1]  key       any     the hash of the lock, or the key of one read hold
-- ARGV[1]  owner     string  owner that must be in the hash with either half; '' = the key is that of a read hold
-- ARGV[2]  lease     int     ms
-- ARGV[3]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  n   remaining lease of the key in ms
--          0   the key is missing, or the owner no longer holds the lock; nothing changed

local key = KEYS[1]
local owner, lease, notAfter = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

-- include: lib/not-after.lua
if owner ~= '' and redis.call('HEXISTS', key, owner) + redis.call('HEXISTS', key, owner .. ':write') == 0 then return 0 end
local left = redis.call('PTTL', key)
if left == -2 then return 0 end
-- Never shorten the lease. A key without expiry counts as held for the requested lease.
if left >= 0 and left < lease then redis.call('PEXPIRE', key, lease) end
return math.max(left, lease)
