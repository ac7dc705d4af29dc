-- read-write-lock/nest-read: adds a read hold to what its owner has, of either half
-- KEYS[1]  lock      hash    mode -> read or write; owner -> read holds; owner:write -> write holds
-- KEYS[2]  base      string  what the keys of all read holds begin with: base:owner:rwlock_timeout:n
-- ARGV[1]  owner     string  owner id
-- ARGV[2]  count     int     read holds after this call; absolute, so a repeated request counts once
-- ARGV[3]  lease     int     ms
-- ARGV[4]  notAfter  int     epoch ms of this server after which nothing is changed; 0 = no limit
-- Returns  1   held
--          0   the owner does not hold the lock any more; nothing changed
--          -3  too late; nothing changed
-- Used by  src/redis/scripts/read-write-lock.ts (nestRead)

local lock, base = KEYS[1], KEYS[2]
local owner, count, lease, notAfter = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

if notAfter > 0 then
  local time = redis.call('TIME')
  if time[1] * 1000 + time[2] / 1000 > notAfter then return -3 end
end
if redis.call('HEXISTS', lock, owner) + redis.call('HEXISTS', lock, owner .. ':write') == 0 then return 0 end
local left = redis.call('PTTL', lock)
-- Some may have been given back already, with a request that is still to come: no key may be left that nobody counts.
for i = count + 1, tonumber(redis.call('HGET', lock, owner) or '0') do
  redis.call('DEL', base .. ':' .. owner .. ':rwlock_timeout:' .. i)
end
redis.call('HSET', lock, owner, count)
local hold = base .. ':' .. owner .. ':rwlock_timeout:' .. count
if redis.call('PTTL', hold) < tonumber(lease) then redis.call('SET', hold, '1', 'PX', lease) end
if left >= 0 and left < tonumber(lease) then redis.call('PEXPIRE', lock, lease) end
return 1
