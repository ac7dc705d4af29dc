-- semaphore/delete: deletes a semaphore, and wakes waiters
-- KEYS[1]  semaphore  string  free permits
-- KEYS[2]  requests  hash    lane of this client -> sequence:answer
-- ARGV[1]  publish   string  PUBLISH or SPUBLISH
-- ARGV[2]  channel   string  wake-up channel of this semaphore
-- ARGV[3]  lane      int     lane of the request
-- ARGV[4]  sequence  int     number of the request; it increases with each request of the lane
-- ARGV[5]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  1   deleted
--          0   the semaphore does not exist; nothing changed
--          n   the answer of the first run, if the request has run before
--          WRONGTYPE  the string of this name is not a count of permits; nothing changed

local semaphore, requests = KEYS[1], KEYS[2]
local publish, channel, lane, sequence, notAfter = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])

-- include: lib/not-after.lua
-- include: lib/lane.lua (defines seen)
local count = redis.call('GET', semaphore)
if count and not tonumber(count) then
  return redis.error_reply('WRONGTYPE the string of this name is not a count of permits')
end
-- Publish first: if Redis refuses the message, nothing has changed.
if count then redis.call(publish, channel, '1') end
redis.call('HSET', requests, lane, sequence .. ':' .. (count and '1' or '0'))
local done = redis.pcall('PEXPIRE', requests, '3600000')
if type(done) == 'number' then done = redis.pcall('DEL', semaphore) end
if type(done) ~= 'number' then
  -- include: lib/lane-undo.lua
  redis.call('DEL', semaphore)
end
if not count then return 0 end
return 1
