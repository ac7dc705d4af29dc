-- read-write-lock/release-partial: releases all holds of an owner, of either half, except the given ones
-- KEYS[1]  lock      hash    mode -> read or write; owner -> read holds; owner:write -> write holds
-- ARGV[1]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- ARGV[2]  base      string  prefix of the keys of all read holds: base:owner:rwlock_timeout:n
-- ARGV[3]  owner     string  owner id
-- ARGV[4]  writes    int     write holds that remain; absolute, so a repeated request counts once
-- ARGV[5]  lease     int     longest remaining lease of the other holds, in ms
-- ARGV[6]  publish   string  PUBLISH or SPUBLISH
-- ARGV[7]  channel   string  wake-up channel of both halves
-- ARGV[8..n]  lefts  remaining lease of each remaining read hold in ms, 0 = expired
-- Returns  1   held with the given holds
--          0   the owner no longer holds the lock; nothing changed
--              an error that begins with TRYAGAIN: the other node of a migrating slot has a read hold of the owner;
--              nothing changed

local lock = KEYS[1]
local notAfter, base, owner, writes = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local lease, publish, channel = ARGV[5], ARGV[6], ARGV[7]

-- include: lib/read-hold-left.lua (defines leftOf)
-- include: lib/other-reads.lua (defines otherReads)
-- include: lib/not-after.lua
local writer = owner .. ':write'
local counted = redis.call('HGET', lock, owner)
local wrote = redis.call('HEXISTS', lock, writer) == 1
if not counted and not wrote then return 0 end
local reads, longest = #ARGV - 7, tonumber(lease)
-- The hash may have lasted for the writer alone.
local own = wrote and redis.call('PTTL', lock) or 0
-- Refuse if a key is at the other node: it would later migrate here and replace the key that is written now.
for i = 1, math.max(reads, tonumber(counted or '0')) do
  local left = leftOf(lock, base .. ':' .. owner .. ':rwlock_timeout:' .. i)
  if left == nil and i <= reads then
    return redis.error_reply('TRYAGAIN the slot is moving, and a read hold of this owner is at its other node')
  end
  own = math.max(own, left or redis.call('PTTL', lock))
end
if writes == '0' then longest = math.max(longest, otherReads(lock, base, { [owner] = true }, 1, own)) end
-- include: lib/read-hold-drop.lua (defines drop)
-- At maxmemory, Redis refuses a script whose first write needs memory. This write needs none.
redis.call('HDEL', lock, '')
for i = reads + 1, tonumber(counted or '0') do drop(base .. ':' .. owner .. ':rwlock_timeout:' .. i) end
-- Write the keys again, in order: each remaining hold keeps the rest of its own lease.
for i = 1, reads do
  local hold = base .. ':' .. owner .. ':rwlock_timeout:' .. i
  if tonumber(ARGV[7 + i]) > 0 then
    redis.call('SET', hold, '1', 'PX', ARGV[7 + i])
  else
    redis.call('DEL', hold)
  end
end
if reads > 0 then redis.call('HSET', lock, owner, reads) else redis.call('HDEL', lock, owner) end
if writes ~= '0' then
  redis.call('HSET', lock, writer, writes)
elseif wrote then
  redis.call('HDEL', lock, writer)
  redis.call('HSET', lock, 'mode', 'read')
  -- Readers that wait for this writer can acquire the lock now, and not only at the end of its lease.
  redis.call(publish, channel, '1')
end
redis.call('PEXPIRE', lock, longest)
return 1
