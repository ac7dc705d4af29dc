-- group-lock/renew: extends the leases of values that their owners still hold
-- KEYS[1..n]  groups  hash  value -> owner; value:owner:expire_time -> epoch ms; value:owner:lock_count -> holds
-- ARGV[1]     notAfter  int  server time in epoch ms after which the script changes nothing; 0 = no limit
-- ARGV[2..n]  holds     for each group: owner, lease in ms, number of values to renew, number of others, the values
-- Returns  an array with one integer for each group: shortest remaining lease, in ms, of the values to renew, or of
--                    all values if none is to renew; 0 = the owner no longer holds all values, and none was renewed

local notAfter = tonumber(ARGV[1])

-- include: lib/now.lua (defines now)
local lefts = {}
local a = 2
for k = 1, #KEYS do
  local group, owner, lease = KEYS[k], ARGV[a], tonumber(ARGV[a + 1])
  local renewed = tonumber(ARGV[a + 2])
  local values = renewed + tonumber(ARGV[a + 3])
  local least, longer = nil, {}
  for i = 1, values do
    local value = ARGV[a + 3 + i]
    local field = value .. ':' .. owner .. ':expire_time'
    local ends = tonumber(redis.call('HGET', group, field)) or 0
    if ends <= now or redis.call('HGET', group, value) ~= owner then
      least, longer = 0, {}
      break
    end
    local left = ends - now
    if i <= renewed and left < lease then
      longer[#longer + 1] = field
      left = lease
    end
    if (i <= renewed or renewed == 0) and (least == nil or left < least) then least = left end
  end
  -- At maxmemory, Redis refuses a script whose first write needs memory. This write needs none.
  if #longer > 0 then redis.call('HDEL', group, '') end
  for _, field in ipairs(longer) do redis.call('HSET', group, field, string.format('%.0f', now + lease)) end
  if #longer > 0 then
    local ttl = redis.call('PTTL', group)
    if ttl >= 0 and ttl < lease then redis.call('PEXPIRE', group, ARGV[a + 1]) end
  end
  lefts[k] = least
  a = a + 4 + values
end
return lefts
