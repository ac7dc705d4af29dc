-- permit-expirable-semaphore/count: counts the permits, after it has freed those whose leases have expired
-- KEYS[1]  semaphore  string  permits that are free
-- KEYS[2]  taken      zset    permit id in 16 bytes -> epoch ms at which its lease ends
-- ARGV[1]  publish  string  PUBLISH or SPUBLISH
-- ARGV[2]  channel  string  wake-up channel of this semaphore
-- Returns  an array: 1 = there is such a semaphore, 0 = there is none; permits that are free; permits that are taken
-- Used by  src/redis/scripts/permit-expirable-semaphore.ts (count)

local semaphore, taken = KEYS[1], KEYS[2]
local publish, channel = ARGV[1], ARGV[2]

local time = redis.call('TIME')
local now = math.floor(time[1] * 1000 + time[2] / 1000)
-- Read before the sweep: a slot that is leaving this node refuses every later look at a set that the sweep has emptied.
local members = redis.call('ZCARD', taken)
-- include: lib/permit-sweep.lua
local free = redis.call('GET', semaphore)
return { free and 1 or 0, tonumber(free or '0'), members - over }
