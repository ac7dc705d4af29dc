-- permit-expirable-semaphore/count: frees expired permits, and then counts the permits
-- KEYS[1]  semaphore  string  free permits
-- KEYS[2]  taken      zset    permit id (16 bytes) -> epoch ms at which its lease ends
-- ARGV[1]  publish   string  PUBLISH or SPUBLISH
-- ARGV[2]  channel   string  wake-up channel of this semaphore
-- ARGV[3]  declared  int     number of permits of the semaphore; -1 = unknown
-- Returns  an array: 1 = the semaphore exists, 0 = it does not; free permits; taken permits

local semaphore, taken = KEYS[1], KEYS[2]
local publish, channel, declared = ARGV[1], ARGV[2], tonumber(ARGV[3])

local time = redis.call('TIME')
local now = math.floor(time[1] * 1000 + time[2] / 1000)
-- Read before the sweep: while the slot migrates to another node, Redis refuses reads of a set that the sweep has
-- emptied.
local members = redis.call('ZCARD', taken)
-- include: lib/permit-count.lua (defines over)
-- include: lib/permit-sweep.lua
local free = redis.call('GET', semaphore)
return { free and 1 or 0, tonumber(free or '0'), members - over }
