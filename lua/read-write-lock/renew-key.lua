-- read-write-lock/renew-key: extends the lease of one key of a hold, where a moving slot has its keys at two nodes
-- KEYS[1]  key       any     the hash of the lock, or the key of one read hold
-- ARGV[1]  owner     string  the owner that the hash must have, with either half; '' = it is the key of a read hold
-- ARGV[2]  lease     int     ms
-- ARGV[3]  notAfter  int     epoch ms of this server after which nothing is changed; 0 = no limit
-- Returns  n   ms that the key has left
--          0   it is gone, or the owner does not hold the lock any more; nothing changed
--          -3  too late; nothing changed
-- Used by  src/redis/scripts/read-write-lock.ts (renewKey)

local key = KEYS[1]
local owner, lease, notAfter = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

-- include: lib/not-after.lua
if owner ~= '' and redis.call('HEXISTS', key, owner) + redis.call('HEXISTS', key, owner .. ':write') == 0 then return 0 end
local left = redis.call('PTTL', key)
if left == -2 then return 0 end
-- Never shortens. A key without expiry is held at least as long as asked for.
if left >= 0 and left < lease then redis.call('PEXPIRE', key, lease) end
return math.max(left, lease)
