-- group-lock/state: reads the owners and the hold counts of values of a group
-- KEYS[1]  group  hash  value -> owner; value:owner:expire_time -> epoch ms; value:owner:lock_count -> holds
-- ARGV[1]     owner   string  owner id; '' = no owner
-- ARGV[2..n]  values  string  hashed values
-- Returns  an array  ms until the last value is free, -2 = all are free; lowest hold count of the owner, 0 = it does
--                    not hold all values; then the owners that hold a value

local group = KEYS[1]
local owner = ARGV[1]

local time = redis.call('TIME')
local now = math.floor(time[1] * 1000 + time[2] / 1000)
local left, count = -2, nil
local state, seen = { -2, 0 }, {}
for i = 2, #ARGV do
  local other = redis.call('HGET', group, ARGV[i])
  local holds = 0
  if other then
    local field = ARGV[i] .. ':' .. other
    local ends = tonumber(redis.call('HGET', group, field .. ':expire_time')) or 0
    if ends > now then
      if ends - now > left then left = ends - now end
      if other == owner then holds = tonumber(redis.call('HGET', group, field .. ':lock_count')) or 0 end
      if not seen[other] then
        seen[other] = true
        state[#state + 1] = other
      end
    end
  end
  if count == nil or holds < count then count = holds end
end
state[1], state[2] = left, count
return state
