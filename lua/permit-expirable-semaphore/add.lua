-- permit-expirable-semaphore/add: adds a difference to the number of free permits, and wakes waiters
-- KEYS[1]  semaphore  string  free permits
-- KEYS[2]  taken      zset    permit id (16 bytes) -> epoch ms at which its lease ends
-- KEYS[3]  requests   hash    lane of this client -> sequence:answer
-- ARGV[1]  permits   int     difference; may be negative, and so may the result
-- ARGV[2]  declared  int     number of permits of the semaphore; -1 = unknown
-- ARGV[3]  publish   string  PUBLISH or SPUBLISH
-- ARGV[4]  channel   string  wake-up channel of this semaphore
-- ARGV[5]  lane      int     lane of the request
-- ARGV[6]  sequence  int     number of the request; it increases with each request of the lane
-- ARGV[7]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  1   done
--          n   the answer of the first run, if the request has run before

local semaphore, taken, requests = KEYS[1], KEYS[2], KEYS[3]
local permits, declared, publish, channel = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local lane, sequence, notAfter = ARGV[5], ARGV[6], tonumber(ARGV[7])

-- include: lib/now.lua (defines now)
-- include: lib/lane.lua (defines seen)
-- include: lib/permit-count.lua (defines over)
-- Publish first: if Redis refuses the message, nothing has changed. INCRBY refuses a value that is not a number.
local free = (count or 0) + permits
if free > 0 then redis.call(publish, channel, free) end
local answer, change = 1, permits
-- include: lib/permit-change.lua
return 1
