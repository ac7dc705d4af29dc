-- permit-expirable-semaphore/release: releases permits, and wakes waiters
-- KEYS[1]  semaphore  string  free permits
-- KEYS[2]  taken      zset    permit id (16 bytes) -> epoch ms at which its lease ends
-- ARGV[1]     publish   string  PUBLISH or SPUBLISH
-- ARGV[2]     channel   string  wake-up channel of this semaphore
-- ARGV[3]     declared  int     number of permits of the semaphore; -1 = unknown
-- ARGV[4]     any       int     1 = release the ids that are taken, 0 = release all of them or none
-- ARGV[5..n]  ids       string  permit ids in hex
-- Returns  1  released
--          0  none of them is taken, or their leases have expired
--          2  some of them are not taken, or their leases have expired; none is released

local semaphore, taken = KEYS[1], KEYS[2]
local publish, channel, declared, any = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

local time = redis.call('TIME')
local now = math.floor(time[1] * 1000 + time[2] / 1000)
local idsFrom = 5
-- include: lib/permit-ids.lua (defines ids)
local known = {}
for _, id in ipairs(ids) do
  if tonumber(redis.call('ZSCORE', taken, id) or '-1') > now then known[#known + 1] = id end
end
local released = known
if #known < #ids and any == '0' then released = {} end
-- Free the permits in both keys, or in neither if Redis refuses one of the commands. Expired permits become free with
-- them. Remove the expired ones last: while the slot migrates to another node, Redis refuses a command on an empty set.
-- include: lib/permit-count.lua (defines over)
local freed = over + #released
if freed > 0 then
  local free = (count or 0) + freed
  if free > 0 then redis.call(publish, channel, free) end
  -- This command removes nothing. If Redis refuses writes to the set, it refuses this one. At maxmemory, Redis accepts
  -- a script whose first write needs no memory.
  redis.call('ZREM', taken, '')
  if made then
    redis.call('SET', semaphore, count + freed, unpack(lifetime))
  elseif count then
    redis.call('INCRBY', semaphore, freed)
  end
end
for _, id in ipairs(released) do redis.call('ZREM', taken, id) end
if over > 0 and type(redis.pcall('ZREMRANGEBYSCORE', taken, 0, now)) ~= 'number' then
  if count then redis.call('INCRBY', semaphore, -over) end
  redis.call('ZREMRANGEBYSCORE', taken, 0, now)
end
if #known == 0 then return 0 end
if #released == 0 then return 2 end
return 1
