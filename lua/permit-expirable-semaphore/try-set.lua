-- permit-expirable-semaphore/try-set: creates a semaphore with a number of permits, unless it exists
-- KEYS[1]  semaphore  string  free permits
-- KEYS[2]  taken      zset    permit id (16 bytes) -> epoch ms at which its lease ends
-- KEYS[3]  requests   hash    lane of this client -> sequence:answer
-- ARGV[1]  permits   int     number of permits
-- ARGV[2]  publish   string  PUBLISH or SPUBLISH
-- ARGV[3]  channel   string  wake-up channel of this semaphore
-- ARGV[4]  lane      int     lane of the request
-- ARGV[5]  sequence  int     number of the request; it increases with each request of the lane
-- ARGV[6]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  1   created
--          0   the semaphore exists; nothing changed
--          n   the answer of the first run, if the request has run before

local semaphore, taken, requests = KEYS[1], KEYS[2], KEYS[3]
local permits, publish, channel = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local lane, sequence, notAfter = ARGV[4], ARGV[5], tonumber(ARGV[6])

-- include: lib/now.lua (defines now)
-- include: lib/lane.lua (defines seen)
local declared = permits
-- include: lib/permit-count.lua (defines over)
-- Publish first: if Redis refuses the message, nothing has changed.
if made and count > 0 then redis.call(publish, channel, count) end
local answer, change = made and 1 or 0, made and 0 or nil
-- include: lib/permit-change.lua
if not made then return 0 end
return 1
