-- semaphore/add: adds a difference to the number of free permits, and wakes waiters
-- KEYS[1]  semaphore  string  free permits
-- KEYS[2]  requests  hash    lane of this client -> sequence:answer
-- ARGV[1]  permits   int     difference; may be negative, and so may the result
-- ARGV[2]  declared  int     number of permits of a semaphore that does not exist
-- ARGV[3]  publish   string  PUBLISH or SPUBLISH
-- ARGV[4]  channel   string  wake-up channel of this semaphore
-- ARGV[5]  lane      int     lane of the request
-- ARGV[6]  sequence  int     number of the request; it increases with each request of the lane
-- ARGV[7]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  1   done
--          n   the answer of the first run, if the request has run before

local semaphore, requests = KEYS[1], KEYS[2]
local permits, declared, publish, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local lane, sequence, notAfter = ARGV[5], ARGV[6], tonumber(ARGV[7])

-- include: lib/not-after.lua
-- include: lib/lane.lua (defines seen)
-- Publish first: if Redis refuses the message, nothing has changed. INCRBY refuses a value that is not a number.
local count = redis.call('GET', semaphore)
local change = permits
if not count then change = declared + permits end
local free = (tonumber(count or '0') or 0) + change
if free > 0 then redis.call(publish, channel, free) end
redis.call('HSET', requests, lane, sequence .. ':1')
local added = redis.pcall('PEXPIRE', requests, '3600000')
if type(added) == 'number' then added = redis.pcall('INCRBY', semaphore, change) end
if type(added) ~= 'number' then
  -- include: lib/lane-undo.lua
  redis.call('INCRBY', semaphore, change)
end
return 1
