-- semaphore/acquire: takes permits if enough are free
-- KEYS[1]  semaphore  string  free permits
-- KEYS[2]  requests  hash    lane of this client -> sequence:answer
-- ARGV[1]  permits   int     number of permits, at least 1
-- ARGV[2]  lane      int     lane of the request
-- ARGV[3]  sequence  int     number of the request; it increases with each request of the lane
-- ARGV[4]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  n   taken: free permits that remain
--          -1  too few free permits; none taken
--          WRONGTYPE  the string of this name is not a count of permits; nothing changed

local semaphore, requests = KEYS[1], KEYS[2]
local permits, lane, sequence, notAfter = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])

-- include: lib/not-after.lua
-- include: lib/lane.lua (defines seen)
local free = tonumber(redis.call('GET', semaphore) or '0')
if not free then return redis.error_reply('WRONGTYPE the string of this name is not a count of permits') end
local answer = free - permits
if answer < 0 then answer = -1 end
-- Store a "busy" answer, too: a copy of the request that arrives later must not take permits that no caller expects.
redis.call('HSET', requests, lane, sequence .. ':' .. answer)
local taken = redis.pcall('PEXPIRE', requests, '3600000')
if type(taken) == 'number' and answer >= 0 then taken = redis.pcall('DECRBY', semaphore, permits) end
if type(taken) ~= 'number' then
  -- include: lib/lane-undo.lua
  redis.call('DECRBY', semaphore, permits)
end
if answer < 0 then return -1 end
return answer
