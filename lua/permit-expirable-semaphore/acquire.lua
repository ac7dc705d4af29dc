-- permit-expirable-semaphore/acquire: takes permits with a lease if enough are free, and may create the semaphore
-- KEYS[1]  semaphore  string  free permits
-- KEYS[2]  taken      zset    permit id (16 bytes) -> epoch ms at which its lease ends
-- ARGV[1]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- ARGV[2]  lease     int     ms; -1 = no expiry
-- ARGV[3]  publish   string  PUBLISH or SPUBLISH
-- ARGV[4]  channel   string  wake-up channel of this semaphore
-- ARGV[5]  declared  int  number of permits of a semaphore that does not exist; -1 = do not create it
-- ARGV[6..n]  ids    string  one new permit id in hex for each permit
-- Returns  an array: 1 = taken, 0 = too few are free and none is taken, -1 = the semaphore does not exist and none is
--            taken; free permits; ms until the next lease of a permit ends, -1 = none has an expiry
--          WRONGTYPE  the string of this name is not a count of permits; nothing changed

local semaphore, taken = KEYS[1], KEYS[2]
local notAfter, lease, publish, channel = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local declared = tonumber(ARGV[5])

-- include: lib/now.lua (defines now)
-- include: lib/permit-count.lua (defines over)
if stored and not tonumber(stored) then
  return redis.error_reply('WRONGTYPE the string of this name is not a count of permits')
end
local free = (count or 0) + over
local idsFrom = 6
-- include: lib/permit-ids.lua (defines ids)
-- A repeat finds its own ids. It takes no further permits, and its lease counts from now.
local repeated = tonumber(redis.call('ZSCORE', taken, ids[1]) or '-1') > now
local granted = (repeated or count and free >= #ids) and 1 or count and 0 or -1
local takes = granted == 1 and not repeated and #ids or 0
local first = granted ~= 1 and redis.call('ZRANGE', taken, over, over, 'WITHSCORES')
-- Free the expired permits and take the new ones in both keys, or in neither if Redis refuses a command.
local change = over - takes
if (made or over > 0) and free > 0 then redis.call(publish, channel, free) end
if made then
  redis.call('SET', semaphore, count + change, unpack(lifetime))
elseif count and change ~= 0 then
  redis.call('INCRBY', semaphore, change)
end
-- This command removes nothing. If Redis refuses writes to the set, it refuses this one.
if over > 0 and type(redis.pcall('ZREMRANGEBYSCORE', taken, 1, 0)) ~= 'number' then
  if made then
    redis.call('DEL', semaphore)
  elseif count then
    redis.call('INCRBY', semaphore, -change)
  end
  redis.call('ZREMRANGEBYSCORE', taken, 1, 0)
end
-- Redisson stores this number for a permit without an expiry. A larger one means the same.
local never = 922337203685477
if granted == 1 then
  local ends = never
  if lease >= 0 and now + lease < never then ends = now + lease end
  for i = 1, #ids do
    -- Redis can refuse only the first ZADD. Undo the count then: permits without an id could not be released.
    if type(redis.pcall('ZADD', taken, ends, ids[i])) ~= 'number' then
      if made then
        redis.call('DEL', semaphore)
      elseif count and change ~= 0 then
        redis.call('INCRBY', semaphore, -change)
      end
      redis.call('ZADD', taken, ends, ids[i])
    end
  end
end
-- Remove expired permits after adding the new ones: while the slot migrates to another node, Redis refuses a new set.
if over > 0 then redis.call('ZREMRANGEBYSCORE', taken, 0, now) end
if granted == 1 then
  -- Both keys must expire together. Otherwise permits would vanish, or a release would add to a semaphore that has
  -- expired.
  local ttl = redis.call('PTTL', semaphore)
  if ttl > 0 then redis.call('PEXPIRE', taken, ttl) else redis.call('PERSIST', taken) end
  first = redis.call('ZRANGE', taken, 0, 0, 'WITHSCORES')
end
free = free - takes
if not first[2] or tonumber(first[2]) >= never then return { granted, free, -1 } end
return { granted, free, math.max(tonumber(first[2]) - now, 0) }
