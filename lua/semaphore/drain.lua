-- semaphore/drain: takes all free permits
-- KEYS[1]  semaphore  string  free permits
-- KEYS[2]  requests  hash    lane of this client -> sequence:answer
-- ARGV[1]  declared  int     number of permits of a semaphore that does not exist; -1 = do not create it
-- ARGV[2]  lane      int     lane of the request
-- ARGV[3]  sequence  int     number of the request; it increases with each request of the lane
-- ARGV[4]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  n   number of permits taken
--          WRONGTYPE  the string of this name is not a count of permits; nothing changed

local semaphore, requests = KEYS[1], KEYS[2]
local declared, lane, sequence, notAfter = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])

-- include: lib/not-after.lua
-- include: lib/lane.lua (defines seen)
local count = redis.call('GET', semaphore)
local made = not count and declared > 0
local free = tonumber(count or made and declared or '0')
if not free then return redis.error_reply('WRONGTYPE the string of this name is not a count of permits') end
-- addPermits() can make the number negative. Keep a negative number.
if free < 0 then free = 0 end
-- Format the number: Lua rounds numbers with 15 or more digits, and a repeat would report or release a wrong number.
redis.call('HSET', requests, lane, sequence .. ':' .. string.format('%.0f', free))
local taken = redis.pcall('PEXPIRE', requests, '3600000')
-- A semaphore that this script creates has no free permit left.
local change = made and 0 or free
if type(taken) == 'number' and free > 0 then taken = redis.pcall('DECRBY', semaphore, change) end
if type(taken) ~= 'number' then
  -- include: lib/lane-undo.lua
  redis.call('DECRBY', semaphore, change)
end
return free
