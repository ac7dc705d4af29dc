-- read-write-lock/release-partial: releases all but the given holds of an owner, of either half
-- KEYS[1]  lock      hash    mode -> read or write; owner -> read holds; owner:write -> write holds
-- ARGV[1]  notAfter  int     epoch ms of this server after which nothing is changed; 0 = no limit
-- ARGV[2]  base      string  what the keys of all read holds begin with: base:owner:rwlock_timeout:n
-- ARGV[3]  owner     string  owner id
-- ARGV[4]  writes    int     write holds that remain; absolute, so a repeated request counts once
-- ARGV[5]  lease     int     ms that the longest of the remaining holds has left
-- ARGV[6]  publish   string  PUBLISH or SPUBLISH
-- ARGV[7]  channel   string  wake-up channel of both halves
-- ARGV[8..n]  lefts  ms that each of the remaining read holds has left, 0 = none
-- Returns  1   held with these
--          0   the owner does not hold the lock any more; nothing changed
--          -3  too late; nothing changed
--              an error that begins with TRYAGAIN: a slot that moves has a read hold of the owner at its other node;
--              nothing changed
-- Used by  src/redis/scripts/read-write-lock.ts (releasePartial)

local lock = KEYS[1]
local notAfter, base, owner, writes = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local lease, publish, channel = ARGV[5], ARGV[6], ARGV[7]

-- include: lib/read-hold-left.lua
-- include: lib/not-after.lua
local writer = owner .. ':write'
local counted = redis.call('HGET', lock, owner)
local wrote = redis.call('HEXISTS', lock, writer) == 1
if not counted and not wrote then return 0 end
local reads = #ARGV - 7
-- A key that is written here must not come from the other node afterwards.
for i = 1, reads do
  if leftOf(lock, base .. ':' .. owner .. ':rwlock_timeout:' .. i) == nil then
    return redis.error_reply('TRYAGAIN the slot is moving, and a read hold of this owner is at its other node')
  end
end
-- include: lib/read-hold-drop.lua
-- At maxmemory Redis allows what begins with a write that needs no memory.
redis.call('HDEL', lock, '')
for i = reads + 1, tonumber(counted or '0') do drop(base .. ':' .. owner .. ':rwlock_timeout:' .. i) end
-- The keys are written anew in order: the remaining holds keep what is left of their own leases.
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
  -- Readers that wait for this writer get in now, not when its lease would have ended.
  redis.call(publish, channel, '1')
end
local longest = tonumber(lease)
if writes == '0' then
  local fields = redis.call('HGETALL', lock)
  for f = 1, #fields, 2 do
    for i = 1, tonumber(fields[f + 1]) or 0 do
      -- What cannot be seen from here may last as long as the lock.
      local left = leftOf(lock, base .. ':' .. fields[f] .. ':rwlock_timeout:' .. i) or redis.call('PTTL', lock)
      if left > longest then longest = left end
    end
  end
end
redis.call('PEXPIRE', lock, longest)
return 1
