-- semaphore/try-set: creates a semaphore with a number of permits, unless it exists
-- KEYS[1]  semaphore  string  free permits
-- KEYS[2]  requests  hash    lane of this client -> sequence:answer
-- ARGV[1]  permits   int     number of permits
-- ARGV[2]  ttl       int     ms until the semaphore expires; -1 = no expiry
-- ARGV[3]  publish   string  PUBLISH or SPUBLISH
-- ARGV[4]  channel   string  wake-up channel of this semaphore
-- ARGV[5]  lane      int     lane of the request
-- ARGV[6]  sequence  int     number of the request; it increases with each request of the lane
-- ARGV[7]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  1   created
--          0   the semaphore exists; nothing changed
--          n   the answer of the first run, if the request has run before

local semaphore, requests = KEYS[1], KEYS[2]
local permits, ttl, publish, channel, lane, sequence, notAfter = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7])

-- include: lib/not-after.lua
-- include: lib/lane.lua (defines seen)
local made = 1 - redis.call('EXISTS', semaphore)
-- Publish first: if Redis refuses the message, nothing has changed.
if made == 1 and tonumber(permits) > 0 then redis.call(publish, channel, permits) end
redis.call('HSET', requests, lane, sequence .. ':' .. made)
local set = redis.pcall('PEXPIRE', requests, '3600000')
if type(set) == 'number' and made == 1 then set = redis.pcall('SETNX', semaphore, permits) end
if type(set) ~= 'number' then
  -- include: lib/lane-undo.lua
  redis.call('SETNX', semaphore, permits)
end
if made == 0 then return 0 end
if ttl ~= '-1' then redis.call('PEXPIRE', semaphore, ttl) end
return 1
