-- semaphore/acquire: takes permits if there are enough
-- KEYS[1]  semaphore  string  permits that are free
-- KEYS[2]  requests  hash    lane -> sequence:answer, of this client
-- ARGV[1]  permits   int     how many, at least 1
-- ARGV[2]  lane      int     lane of this client that carries the request
-- ARGV[3]  sequence  int     number of the request, larger than all before it in its lane
-- ARGV[4]  notAfter  int     epoch ms of this server after which nothing is changed; 0 = no limit
-- Returns  n   taken: permits that are left
--          -1  not enough; nothing taken
--          -3  too late; nothing changed
--          -4  cancelled, or the lane carries a later request; nothing changed
--          WRONGTYPE  the string of this name is not a count of permits; nothing changed
-- Used by  src/redis/scripts/semaphore.ts (acquire)

local semaphore, requests = KEYS[1], KEYS[2]
local permits, lane, sequence, notAfter = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])

-- include: lib/not-after.lua
-- include: lib/lane.lua
local free = tonumber(redis.call('GET', semaphore) or '0')
if not free then return redis.error_reply('WRONGTYPE the string of this name is not a count of permits') end
local answer = free - permits
if answer < 0 then answer = -1 end
-- "Busy" is stored as well: a copy that comes later must not take permits that no caller waits for.
redis.call('HSET', requests, lane, sequence .. ':' .. answer)
local taken = redis.pcall('PEXPIRE', requests, '3600000')
if type(taken) == 'number' and answer >= 0 then taken = redis.pcall('DECRBY', semaphore, permits) end
if type(taken) ~= 'number' then
  -- Refused half-way: restore the lane, so that a repeat does all of it, and send the command again for its error.
  redis.call('HSET', requests, lane, seen or '0:-4')
  redis.call('PEXPIRE', requests, '3600000')
  redis.call('DECRBY', semaphore, permits)
end
if answer < 0 then return -1 end
return answer
