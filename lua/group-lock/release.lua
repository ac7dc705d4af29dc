-- group-lock/release: releases the given values of the given owners, and wakes waiters
-- KEYS[1]  group  hash    value -> owner; value:owner:expire_time -> epoch ms; value:owner:lock_count -> holds
-- ARGV[1]     publish  string  PUBLISH or SPUBLISH
-- ARGV[2]     channel  string  wake-up channel of the group
-- ARGV[3]     owners   int     number of owners that follow
-- ARGV[4]     needed   int     number of values, from the first on, that the first owner is expected to hold
-- ARGV[5..n]  names    owner ids, then hashed values
-- Returns  1  released and published; the first owner held all needed values
--          2  released and published; the first owner had lost a needed value before
--          0  none of the owners holds any of them; nothing changed

local group = KEYS[1]
local publish, channel, owners, needed = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

local time = redis.call('TIME')
local now = math.floor(time[1] * 1000 + time[2] / 1000)
local first = 5 + owners
local fields, removed, lost = {}, 0, false
for o = 5, first - 1 do
  local owner = ARGV[o]
  -- Lua cannot pass more than 8,000 arguments at once.
  for from = first, #ARGV, 1000 do
    local to = math.min(from + 999, #ARGV)
    local ends = {}
    for i = from, to do
      local field = ARGV[i] .. ':' .. owner
      ends[i - from + 1] = field .. ':expire_time'
      fields[#fields + 1] = field .. ':expire_time'
      fields[#fields + 1] = field .. ':lock_count'
    end
    local has = redis.call('HMGET', group, unpack(ARGV, from, to))
    local last = redis.call('HMGET', group, unpack(ends))
    for i = 1, to - from + 1 do
      if has[i] == owner then
        -- Release this value even if another was lost: no later call would release it.
        fields[#fields + 1] = ARGV[from + i - 1]
        removed = removed + 1
      end
      local needs = o == 5 and from + i - 1 - first < needed
      if needs and (has[i] ~= owner or (tonumber(last[i]) or 0) <= now) then lost = true end
    end
  end
end
-- Use few commands: while the slot migrates to another node, Redis refuses further commands on an emptied key.
for i = 1, #fields, 6000 do redis.call('HDEL', group, unpack(fields, i, math.min(i + 5999, #fields))) end
if removed == 0 then return 0 end
redis.call(publish, channel, '0')
if lost then return 2 end
return 1
