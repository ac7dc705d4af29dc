-- permit-expirable-semaphore/set: sets the number of permits, free and taken together
-- KEYS[1]  semaphore  string  permits that are free
-- KEYS[2]  taken      zset    permit id in 16 bytes -> epoch ms at which its lease ends
-- KEYS[3]  requests   hash    lane -> sequence:answer, of this client
-- ARGV[1]  permits   int     how many
-- ARGV[2]  publish   string  PUBLISH or SPUBLISH
-- ARGV[3]  channel   string  wake-up channel of this semaphore
-- ARGV[4]  lane      int     lane of this client that carries the request
-- ARGV[5]  sequence  int     number of the request, larger than all before it in its lane
-- ARGV[6]  notAfter  int     epoch ms of this server after which nothing is changed; 0 = no limit
-- Returns  1   done
--          -3  too late; nothing changed
--          -4  cancelled, or the lane carries a later request; nothing changed
--          n   what it answered when it ran
-- Used by  src/redis/scripts/permit-expirable-semaphore.ts (set)

local semaphore, taken, requests = KEYS[1], KEYS[2], KEYS[3]
local permits, publish, channel = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local lane, sequence, notAfter = ARGV[4], ARGV[5], tonumber(ARGV[6])

-- include: lib/not-after.lua
-- include: lib/lane.lua
-- Permits whose leases have expired count as taken until a script frees them.
local free = redis.call('GET', semaphore)
local change = permits
if free then change = permits - tonumber(free) - redis.call('ZCARD', taken) end
local changes = not free or change ~= 0
-- The message comes first: if it is refused, nothing has happened.
if changes and permits > 0 then redis.call(publish, channel, permits) end
redis.call('HSET', requests, lane, sequence .. ':1')
local set = redis.pcall('PEXPIRE', requests, '3600000')
if type(set) == 'number' and changes then set = redis.pcall('INCRBY', semaphore, change) end
if type(set) ~= 'number' then
  -- Refused half-way: restore the lane, so that a repeat does all of it, and send the command again for its error.
  redis.call('HSET', requests, lane, seen or '0:-4')
  redis.call('PEXPIRE', requests, '3600000')
  redis.call('INCRBY', semaphore, change)
end
return 1
