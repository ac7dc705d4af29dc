-- permit-expirable-semaphore/hand-off: releases permits, and takes new ones for the next waiter of the same client
-- KEYS[1]  semaphore  string  free permits
-- KEYS[2]  taken      zset    permit id (16 bytes) -> epoch ms at which its lease ends
-- ARGV[1]     publish  string  PUBLISH or SPUBLISH
-- ARGV[2]     channel  string  wake-up channel of this semaphore
-- ARGV[3]     ours     int     own subscribers of the channel; only release if there are more; -1 = do not check
-- ARGV[4]     lease    int     ms for the new permits; -1 = no expiry
-- ARGV[5]     wanted   int     number of new ids; not more than there are ids to release
-- ARGV[6..n]  ids      string  the new permit ids in hex, and then those to release
-- Returns  1  released, and the next waiter has its new permits
--          2  only released, because other clients wait or the number of free permits is negative
--          0  none of the permits to release is taken, or their leases have expired; nothing changed
--          3  some of them are not taken, or their leases have expired; nothing changed

local semaphore, taken = KEYS[1], KEYS[2]
local publish, channel, ours, lease, wanted = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local time = redis.call('TIME')
local now = math.floor(time[1] * 1000 + time[2] / 1000)
local idsFrom = 6
-- include: lib/permit-ids.lua (defines ids)
local known, first = 0, math.huge
for i = wanted + 1, #ids do
  local ends = tonumber(redis.call('ZSCORE', taken, ids[i]) or '-1')
  if ends > now then
    known = known + 1
    first = math.min(first, ends)
  end
end
if known < #ids - wanted then
  if known > 0 then return 3 end
  -- A repeat finds the new permits. It writes nothing: their lease counts from the first run.
  if tonumber(redis.call('ZSCORE', taken, ids[1]) or '-1') > now then return 1 end
  return 0
end
-- include: lib/others-wait.lua (defines others)
local free = tonumber(redis.call('GET', semaphore) or '0') or 0
-- setPermits() has made the number negative: fewer permits may be taken than now.
local passes = not others and free >= 0
if not passes then wanted = 0 end
local freed, kept = known - wanted, #ids - known
-- Redisson stores this number for a permit without an expiry. A larger one means the same.
local ends = 922337203685477
if lease >= 0 and now + lease < ends then ends = now + lease end
if freed > 0 then
  if free + freed > 0 then redis.call(publish, channel, free + freed) end
elseif ends < first then
  -- A waiter tries again when the lease that it knows ends. Wake it for a lease that ends sooner.
  redis.call(publish, channel, '1')
end
-- This command removes nothing. If Redis refuses to remove permits, it refuses this one, and nothing has changed.
redis.call('ZREM', taken, '')
if freed > 0 then redis.call('INCRBY', semaphore, freed) end
-- Add the new permits before removing the old ones: while the slot migrates to another node, Redis refuses commands on
-- an empty set.
for i = 1, wanted do
  -- Redis can refuse only the first ZADD. Undo the count then.
  if type(redis.pcall('ZADD', taken, ends, ids[i])) ~= 'number' then
    if freed > 0 then redis.call('INCRBY', semaphore, -freed) end
    redis.call('ZADD', taken, ends, ids[i])
  end
end
for i = kept + 1, #ids do redis.call('ZREM', taken, ids[i]) end
if not passes then return 2 end
return 1
