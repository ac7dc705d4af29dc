-- semaphore/drain: takes all permits that are free
-- KEYS[1]  semaphore  string  permits that are free
-- KEYS[2]  requests  hash    lane -> sequence:answer, of this client
-- ARGV[1]  lane      int     lane of this client that carries the request
-- ARGV[2]  sequence  int     number of the request, larger than all before it in its lane
-- ARGV[3]  notAfter  int     epoch ms of this server after which nothing is changed; 0 = no limit
-- Returns  n   permits taken
--          -3  too late; nothing changed
--          -4  cancelled, or the lane carries a later request; nothing changed
--          WRONGTYPE  the string of this name is not a count of permits; nothing changed
-- Used by  src/redis/scripts/semaphore.ts (drain)

local semaphore, requests = KEYS[1], KEYS[2]
local lane, sequence, notAfter = ARGV[1], ARGV[2], tonumber(ARGV[3])

-- include: lib/not-after.lua
-- include: lib/lane.lua
local free = tonumber(redis.call('GET', semaphore) or '0')
if not free then return redis.error_reply('WRONGTYPE the string of this name is not a count of permits') end
-- More were taken away than there are: that stays.
if free < 0 then free = 0 end
-- Whole: Lua would write a number of 15 digits or more rounded, and a repeat would report, or release, that many.
redis.call('HSET', requests, lane, sequence .. ':' .. string.format('%.0f', free))
local taken = redis.pcall('PEXPIRE', requests, '3600000')
if type(taken) == 'number' and free > 0 then taken = redis.pcall('DECRBY', semaphore, free) end
if type(taken) ~= 'number' then
  -- Refused half-way: restore the lane, so that a repeat does all of it, and send the command again for its error.
  redis.call('HSET', requests, lane, seen or '0:-4')
  redis.call('PEXPIRE', requests, '3600000')
  redis.call('DECRBY', semaphore, free)
end
return free
