-- permit-expirable-semaphore/expire: sets the time after which Redis deletes a semaphore with the permits that are taken
-- KEYS[1]  semaphore  string  free permits
-- KEYS[2]  taken      zset    permit id (16 bytes) -> epoch ms at which its lease ends
-- KEYS[3]  requests   hash    lane of this client -> sequence:answer
-- ARGV[1]  ttl       int     ms until the semaphore expires
-- ARGV[2]  lane      int     lane of the request
-- ARGV[3]  sequence  int     number of the request; it increases with each request of the lane
-- ARGV[4]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  1   done
--          0   the semaphore does not exist; nothing changed
--          n   the answer of the first run, if the request has run before

local semaphore, taken, requests = KEYS[1], KEYS[2], KEYS[3]
local ttl, lane, sequence, notAfter = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

-- include: lib/not-after.lua
-- include: lib/lane.lua (defines seen)
local exists = redis.call('EXISTS', semaphore)
if redis.call('EXISTS', taken) == 1 then exists = 1 end
redis.call('HSET', requests, lane, sequence .. ':' .. exists)
local done = redis.pcall('PEXPIRE', requests, '3600000')
if type(done) == 'number' then done = redis.pcall('PEXPIRE', semaphore, ttl) end
if type(done) ~= 'number' then
  -- include: lib/lane-undo.lua
  redis.call('PEXPIRE', semaphore, ttl)
end
redis.call('PEXPIRE', taken, ttl)
if exists == 0 then return 0 end
return 1
