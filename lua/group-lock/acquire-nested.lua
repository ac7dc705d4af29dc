-- group-lock/acquire-nested: adds a hold to values that the owner holds
-- KEYS[1]  group  hash  value -> owner; value:owner:expire_time -> epoch ms; value:owner:lock_count -> holds
-- ARGV[1]     notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- ARGV[2]     owner     string  owner id
-- ARGV[3]     lease     int     ms
-- ARGV[4..n]  values    pairs of a hashed value and its absolute hold count after this call
-- Returns  1   held with these counts
--          0   the owner no longer holds all of them; nothing changed

local group = KEYS[1]
local notAfter, owner, lease = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])

-- include: lib/now.lua (defines now)
local longer = {}
for i = 4, #ARGV, 2 do
  if redis.call('HGET', group, ARGV[i]) ~= owner then return 0 end
  local ends = tonumber(redis.call('HGET', group, ARGV[i] .. ':' .. owner .. ':expire_time')) or 0
  if ends <= now then return 0 end
  longer[i] = ends < now + lease
end
local ends = string.format('%.0f', now + lease)
for i = 4, #ARGV, 2 do
  local field = ARGV[i] .. ':' .. owner
  redis.call('HSET', group, field .. ':lock_count', ARGV[i + 1])
  if longer[i] then redis.call('HSET', group, field .. ':expire_time', ends) end
end
local left = redis.call('PTTL', group)
if left >= 0 and left < lease then redis.call('PEXPIRE', group, string.format('%.0f', lease)) end
return 1
