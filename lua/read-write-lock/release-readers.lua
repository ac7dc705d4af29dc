-- read-write-lock/release-readers: releases all holds of several readers, and wakes a waiter if the lock is free then
-- KEYS[1]  lock      hash    mode -> read or write; owner -> read holds; owner:write -> write holds
-- ARGV[1]     base     string  prefix of the keys of all read holds: base:owner:rwlock_timeout:n
-- ARGV[2]     publish  string  PUBLISH or SPUBLISH
-- ARGV[3]     channel  string  wake-up channel of both halves
-- ARGV[4..n]  owners   string  owner ids, at most 1,000
-- Returns  an array with one integer for each owner: 1 = released; 0 = it has no read hold

local lock = KEYS[1]
local base, publish, channel = ARGV[1], ARGV[2], ARGV[3]

-- include: lib/read-hold-left.lua (defines leftOf)
-- include: lib/other-reads.lua (defines otherReads)
local replies, owners, holds, released, own = {}, {}, {}, {}, 0
for a = 4, #ARGV do
  local owner = ARGV[a]
  local reads = redis.call('HGET', lock, owner)
  replies[a - 3] = reads and 1 or 0
  if reads then
    owners[#owners + 1], released[owner] = owner, true
    for i = 1, tonumber(reads) do
      local hold = base .. ':' .. owner .. ':rwlock_timeout:' .. i
      holds[#holds + 1] = hold
      own = math.max(own, leftOf(lock, hold) or redis.call('PTTL', lock))
    end
  end
end
if #owners == 0 then return replies end
local longest = otherReads(lock, base, released, #owners, own)
-- include: lib/read-hold-drop.lua (defines drop)
for _, hold in ipairs(holds) do drop(hold) end
if longest > 0 then
  redis.call('PEXPIRE', lock, longest)
  -- Delete the fields last: until then a repeat runs completely.
  redis.call('HDEL', lock, unpack(owners))
  return replies
end
redis.call('DEL', lock)
redis.call(publish, channel, '0')
return replies
