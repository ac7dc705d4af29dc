-- permit-expirable-semaphore/acquire: takes permits if there are enough, each until its lease ends
-- KEYS[1]  semaphore  string  permits that are free
-- KEYS[2]  taken      zset    permit id in 16 bytes -> epoch ms at which its lease ends
-- ARGV[1]  notAfter  int     epoch ms of this server after which nothing is changed; 0 = no limit
-- ARGV[2]  lease     int     ms; -1 = until it is released
-- ARGV[3]  publish   string  PUBLISH or SPUBLISH
-- ARGV[4]  channel   string  wake-up channel of this semaphore
-- ARGV[5..n]  ids    string  one permit id in hex for each permit; no other request draws the same
-- Returns  an array: 1 = taken, 0 = not enough and nothing taken; permits that are free; ms until the next lease of a
--            permit ends, -1 = none will
--          -3  too late; nothing changed
--          WRONGTYPE  the string of this name is not a count of permits; nothing changed
-- Used by  src/redis/scripts/permit-expirable-semaphore.ts (acquire)

local semaphore, taken = KEYS[1], KEYS[2]
local notAfter, lease, publish, channel = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]

-- include: lib/now.lua
-- Read before anything is written: a slot that is leaving this node refuses to look at a set that is empty.
local over = redis.call('ZCOUNT', taken, 0, now)
local free = tonumber(redis.call('GET', semaphore) or '0')
if not free then return redis.error_reply('WRONGTYPE the string of this name is not a count of permits') end
free = free + over
local ids = {}
for i = 5, #ARGV do
  local id = ''
  for byte in string.gmatch(ARGV[i], '%x%x') do id = id .. string.char(tonumber(byte, 16)) end
  ids[i - 4] = id
end
-- A repeat finds its own ids: it takes nothing more, and its lease counts from now.
local repeated = tonumber(redis.call('ZSCORE', taken, ids[1]) or '-1') > now
local granted = (repeated or free >= #ids) and 1 or 0
local takes = granted == 1 and not repeated and #ids or 0
local first = redis.call('ZRANGE', taken, over, over, 'WITHSCORES')
-- Permits whose leases are over become free, and others are taken: in both keys, or in neither if Redis refuses a command.
local change = over - takes
if over > 0 and free > 0 then redis.call(publish, channel, free) end
if change ~= 0 then redis.call('INCRBY', semaphore, change) end
-- Removes nothing. Redis refuses it here or not at all.
if over > 0 and type(redis.pcall('ZREMRANGEBYSCORE', taken, 1, 0)) ~= 'number' then
  redis.call('INCRBY', semaphore, -change)
  redis.call('ZREMRANGEBYSCORE', taken, 1, 0)
end
-- Redisson's number for no lease is also the largest that its clients tell from one.
local never = 922337203685477
if granted == 1 then
  local ends = never
  if lease >= 0 and now + lease < never then ends = now + lease end
  for i = 1, #ids do
    -- Only the first can be refused. Permits without an id could not be released.
    if type(redis.pcall('ZADD', taken, ends, ids[i])) ~= 'number' then
      if change ~= 0 then redis.call('INCRBY', semaphore, -change) end
      redis.call('ZADD', taken, ends, ids[i])
    end
  end
end
-- After the new ones: a slot that is leaving this node takes no new set.
if over > 0 then redis.call('ZREMRANGEBYSCORE', taken, 0, now) end
if granted == 1 then
  -- One must not outlive the other: permits would vanish, or be released to a semaphore that is gone.
  local ttl = redis.call('PTTL', semaphore)
  if ttl > 0 then redis.call('PEXPIRE', taken, ttl) else redis.call('PERSIST', taken) end
  first = redis.call('ZRANGE', taken, 0, 0, 'WITHSCORES')
end
free = free - takes
if not first[2] or tonumber(first[2]) >= never then return { granted, free, -1 } end
return { granted, free, math.max(tonumber(first[2]) - now, 0) }
