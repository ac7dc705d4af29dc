-- semaphore/try-set: creates a semaphore with this number of permits, unless it exists
-- KEYS[1]  semaphore  string  permits that are free
-- KEYS[2]  requests  hash    lane -> sequence:answer, of this client
-- ARGV[1]  permits   int     how many
-- ARGV[2]  ttl       int     ms that the semaphore lasts; -1 = for ever
-- ARGV[3]  publish   string  PUBLISH or SPUBLISH
-- ARGV[4]  channel   string  wake-up channel of this semaphore
-- ARGV[5]  lane      int     lane of this client that carries the request
-- ARGV[6]  sequence  int     number of the request, larger than all before it in its lane
-- ARGV[7]  notAfter  int     epoch ms of this server after which nothing is changed; 0 = no limit
-- Returns  1   made
--          0   there is one; nothing changed
--          -3  too late; nothing changed
--          -4  cancelled, or the lane carries a later request; nothing changed
--          n   what it answered when it ran
-- Used by  src/redis/scripts/semaphore.ts (trySet)

local semaphore, requests = KEYS[1], KEYS[2]
local permits, ttl, publish, channel, lane, sequence, notAfter = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7])

-- include: lib/not-after.lua
-- include: lib/lane.lua
local made = 1 - redis.call('EXISTS', semaphore)
-- The message comes first: if it is refused, nothing has happened.
if made == 1 and tonumber(permits) > 0 then redis.call(publish, channel, permits) end
redis.call('HSET', requests, lane, sequence .. ':' .. made)
local set = redis.pcall('PEXPIRE', requests, '3600000')
if type(set) == 'number' and made == 1 then set = redis.pcall('SETNX', semaphore, permits) end
if type(set) ~= 'number' then
  -- Refused half-way: restore the lane, so that a repeat does all of it, and send the command again for its error.
  redis.call('HSET', requests, lane, seen or '0:-4')
  redis.call('PEXPIRE', requests, '3600000')
  redis.call('SETNX', semaphore, permits)
end
if made == 0 then return 0 end
if ttl ~= '-1' then redis.call('PEXPIRE', semaphore, ttl) end
return 1
