-- group-lock/release-partial: releases one of several holds of an owner, and frees the values that only this hold has
-- KEYS[1]  group  hash    value -> owner; value:owner:expire_time -> epoch ms; value:owner:lock_count -> holds
-- ARGV[1]     notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- ARGV[2]     owner     string  owner id
-- ARGV[3]     publish   string  PUBLISH or SPUBLISH
-- ARGV[4]     channel   string  wake-up channel of the group
-- ARGV[5]     longest   int     longest remaining lease of a value, in ms
-- ARGV[6..n]  values    for each value of the owner: hash, absolute hold count after this call, remaining lease in ms
-- Returns  1   held with these counts; published if a value became free
--          0   the owner no longer holds all remaining values; nothing changed

local group = KEYS[1]
local notAfter, owner, publish, channel, longest = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include: lib/now.lua (defines now)
local freed = false
for i = 6, #ARGV, 3 do
  local mine = redis.call('HGET', group, ARGV[i]) == owner
  if ARGV[i + 1] == '0' then
    freed = freed or mine
  else
    local ends = tonumber(redis.call('HGET', group, ARGV[i] .. ':' .. owner .. ':expire_time')) or 0
    if not mine or ends <= now then return 0 end
  end
end
-- At maxmemory, Redis refuses a script whose first write needs memory. This write needs none.
redis.call('HDEL', group, '')
local kept = 0
for i = 6, #ARGV, 3 do
  local value = ARGV[i]
  local field = value .. ':' .. owner
  if ARGV[i + 1] ~= '0' then
    local ends = string.format('%.0f', now + ARGV[i + 2])
    redis.call('HSET', group, field .. ':lock_count', ARGV[i + 1], field .. ':expire_time', ends)
    kept = kept + 1
  else
    if redis.call('HGET', group, value) == owner then redis.call('HDEL', group, value) end
    redis.call('HDEL', group, field .. ':lock_count', field .. ':expire_time')
  end
end
-- Set the expiry only if the owner is alone in the hash: other owners may have longer leases.
if redis.call('HLEN', group) == 3 * kept then redis.call('PEXPIRE', group, longest) end
if freed then redis.call(publish, channel, '0') end
return 1
