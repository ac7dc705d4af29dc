-- read-write-lock/release: releases all holds of the given owners, of either half, and wakes waiters
-- KEYS[1]  lock      hash    mode -> read or write; owner -> read holds; owner:write -> write holds
-- ARGV[1]     base     string  prefix of the keys of all read holds: base:owner:rwlock_timeout:n
-- ARGV[2]     publish  string  PUBLISH or SPUBLISH
-- ARGV[3]     channel  string  wake-up channel of both halves
-- ARGV[4..n]  owners   string  owner ids
-- Returns  1  released; published if the lock became free
--          0  none of them holds it; nothing changed

local lock = KEYS[1]
local base, publish, channel = ARGV[1], ARGV[2], ARGV[3]

-- include: lib/read-hold-left.lua (defines leftOf)
-- include: lib/other-reads.lua (defines otherReads)
local removed, holds, released, wrote, own = {}, {}, {}, 0, 0
for a = 4, #ARGV do
  local reads, writer = redis.call('HGET', lock, ARGV[a]), ARGV[a] .. ':write'
  if reads then
    removed[#removed + 1], released[ARGV[a]] = ARGV[a], true
    for i = 1, tonumber(reads) do
      local hold = base .. ':' .. ARGV[a] .. ':rwlock_timeout:' .. i
      holds[#holds + 1] = hold
      own = math.max(own, leftOf(lock, hold) or redis.call('PTTL', lock))
    end
  end
  if redis.call('HEXISTS', lock, writer) == 1 then
    -- The hash may have lasted for the writer alone.
    removed[#removed + 1], released[writer], wrote, own = writer, true, wrote + 1, redis.call('PTTL', lock)
  end
end
if #removed == 0 then return 0 end
-- Readers with expired leases hold nothing, even if the hash counts them.
local longest = otherReads(lock, base, released, #removed, own)
-- include: lib/read-hold-drop.lua (defines drop)
for _, hold in ipairs(holds) do drop(hold) end
if longest > 0 then
  redis.call('PEXPIRE', lock, longest)
  -- Delete the fields last: until then a repeat runs completely.
  redis.call('HDEL', lock, unpack(removed))
  return 1
end
redis.call('DEL', lock)
-- A writer wakes all waiters, because several readers can enter. The last reader wakes one waiter.
redis.call(publish, channel, wrote > 0 and '1' or '0')
return 1
