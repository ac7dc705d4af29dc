-- group-lock/acquire: takes all given values of a group, or none, for an owner that holds none of them
-- KEYS[1]  group  hash  value -> owner; value:owner:expire_time -> epoch ms; value:owner:lock_count -> holds
-- ARGV[1]     notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- ARGV[2]     owner     string  owner id
-- ARGV[3]     lease     int     ms
-- ARGV[4..n]  values    string  hashed values
-- Returns  nil  all taken, hold count 1
--          0    an earlier attempt took all values, and the owner has lost some since; nothing changed
--          n    busy: ms until the last lease of the other owners ends, or that of a read-write lock with this name;
--               -1 = no expiry

local group = KEYS[1]
local notAfter, owner, lease = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local first = 4

-- include: lib/now.lua (defines now)
-- Do not mix with a read-write lock: its scripts read every number in the hash as a hold count, also an expiry time.
local left = redis.call('PTTL', group)
local lock = group
-- include: lib/foreign-hash.lua
if redis.call('HGET', group, 'mode') then return left == 0 and 1 or left end
-- Read everything before the first write. Lua cannot pass more than 8,000 arguments at once.
local busy, mine, owned = 0, 0, {}
for from = first, #ARGV, 1000 do
  local to = math.min(from + 999, #ARGV)
  local owners = redis.call('HMGET', group, unpack(ARGV, from, to))
  for i = 1, to - from + 1 do
    local other = owners[i]
    if other then
      local at = from + i - 1
      local field = ARGV[at] .. ':' .. other
      local ends = tonumber(redis.call('HGET', group, field .. ':expire_time')) or 0
      if other ~= owner then
        if ends - now > busy then busy = ends - now end
        owned[at] = field
      else
        -- An earlier attempt of this request took the value. Never shorten its lease.
        mine = mine + 1
        if ends > now + lease then owned[at] = ends end
      end
    end
  end
end
if busy > 0 then return busy end
-- The missing values have been released since. If taken again, no call would release them.
if mine > 0 and mine <= #ARGV - first then return 0 end
local ends = string.format('%.0f', now + lease)
for from = first, #ARGV, 1000 do
  local fields, stale = {}, {}
  for at = from, math.min(from + 999, #ARGV) do
    local value, before, last = ARGV[at], owned[at], ends
    if type(before) == 'number' then
      last = string.format('%.0f', before)
    elseif before then
      -- Delete the fields of the expired owner. They would stay as long as the hash of the group.
      stale[#stale + 1] = before .. ':expire_time'
      stale[#stale + 1] = before .. ':lock_count'
    end
    local n = #fields
    fields[n + 1], fields[n + 2] = value, owner
    fields[n + 3], fields[n + 4] = value .. ':' .. owner .. ':expire_time', last
    fields[n + 5], fields[n + 6] = value .. ':' .. owner .. ':lock_count', '1'
  end
  if #stale > 0 then redis.call('HDEL', group, unpack(stale)) end
  redis.call('HSET', group, unpack(fields))
end
if left == -2 or (left >= 0 and left < lease) then redis.call('PEXPIRE', group, string.format('%.0f', lease)) end
return nil
