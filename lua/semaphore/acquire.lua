-- semaphore/acquire: takes permits if enough are free, and may create the semaphore
-- KEYS[1]  semaphore  string  free permits
-- KEYS[2]  requests  hash    lane of this client -> sequence:answer
-- ARGV[1]  permits   int     number of permits, at least 1
-- ARGV[2]  declared  int     number of permits of a semaphore that does not exist; -1 = do not create it
-- ARGV[3]  publish   string  PUBLISH or SPUBLISH
-- ARGV[4]  channel   string  wake-up channel of this semaphore
-- ARGV[5]  lane      int     lane of the request
-- ARGV[6]  sequence  int     number of the request; it increases with each request of the lane
-- ARGV[7]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  n   taken: free permits that remain
--          -1  too few free permits; none taken
--          -2  the semaphore does not exist; none taken
--          WRONGTYPE  the string of this name is not a count of permits; nothing changed

local semaphore, requests = KEYS[1], KEYS[2]
local permits, declared, publish, channel = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local lane, sequence, notAfter = ARGV[5], ARGV[6], tonumber(ARGV[7])

-- include: lib/not-after.lua
-- include: lib/lane.lua (defines seen)
local count = redis.call('GET', semaphore)
local made = not count and declared >= 0
local free = tonumber(count or made and declared or '0')
if not free then return redis.error_reply('WRONGTYPE the string of this name is not a count of permits') end
local answer = free - permits
local change = answer < 0 and 0 or -permits
if answer < 0 then answer = (count or made) and -1 or -2 end
if made then
  change = free + change
  -- Publish first: if Redis refuses the message, nothing has changed.
  if change > 0 then redis.call(publish, channel, change) end
end
-- Store a "busy" answer, too: a copy of the request that arrives later must not take permits that no caller expects.
redis.call('HSET', requests, lane, sequence .. ':' .. answer)
local taken = redis.pcall('PEXPIRE', requests, '3600000')
if type(taken) == 'number' and (made or answer >= 0) then taken = redis.pcall('INCRBY', semaphore, change) end
if type(taken) ~= 'number' then
  -- include: lib/lane-undo.lua
  redis.call('INCRBY', semaphore, change)
end
if answer == -2 then return -2 end
if answer < 0 then return -1 end
return answer
