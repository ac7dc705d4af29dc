-- semaphore/add: changes the number of permits by a difference and wakes waiters
-- KEYS[1]  semaphore  string  permits that are free
-- KEYS[2]  requests  hash    lane -> sequence:answer, of this client
-- ARGV[1]  permits   int     difference; may be negative, and so may the result
-- ARGV[2]  publish   string  PUBLISH or SPUBLISH
-- ARGV[3]  channel   string  wake-up channel of this semaphore
-- ARGV[4]  lane      int     lane of this client that carries the request
-- ARGV[5]  sequence  int     number of the request, larger than all before it in its lane
-- ARGV[6]  notAfter  int     epoch ms of this server after which nothing is changed; 0 = no limit
-- Returns  1   done
--          -3  too late; nothing changed
--          -4  cancelled, or the lane carries a later request; nothing changed
--          n   what it answered when it ran
-- Used by  src/redis/scripts/semaphore.ts (add)

local semaphore, requests = KEYS[1], KEYS[2]
local permits, publish, channel, lane, sequence, notAfter = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])

-- include: lib/not-after.lua
-- include: lib/lane.lua
-- What is no number INCRBY refuses. The message comes first: if it is refused, nothing has happened.
local free = (tonumber(redis.call('GET', semaphore) or '0') or 0) + permits
if free > 0 then redis.call(publish, channel, free) end
redis.call('HSET', requests, lane, sequence .. ':1')
local added = redis.pcall('PEXPIRE', requests, '3600000')
if type(added) == 'number' then added = redis.pcall('INCRBY', semaphore, permits) end
if type(added) ~= 'number' then
  -- Refused half-way: restore the lane, so that a repeat does all of it, and send the command again for its error.
  redis.call('HSET', requests, lane, seen or '0:-4')
  redis.call('PEXPIRE', requests, '3600000')
  redis.call('INCRBY', semaphore, permits)
end
return 1
