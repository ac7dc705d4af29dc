-- semaphore/release: releases permits, and wakes waiters
-- KEYS[1]  semaphore  string  free permits
-- KEYS[2]  requests  hash    lane of this client -> sequence:answer
-- ARGV[1]  permits   int     number of permits, at least 1
-- ARGV[2]  missing   int     number of free permits with which a missing semaphore is created; -1 = do not create it
-- ARGV[3]  publish   string  PUBLISH or SPUBLISH
-- ARGV[4]  channel   string  wake-up channel of this semaphore
-- ARGV[5]  lane      int     lane of the request
-- ARGV[6]  sequence  int     number of the request; it increases with each request of the lane
-- Returns  1   released
--          2   released, and at most one client is subscribed: this one, if it waits
--          3   created
--          0   the semaphore does not exist; nothing changed
--          n   the answer of the first run, if the request has run before

local semaphore, requests = KEYS[1], KEYS[2]
local permits, missing, publish, channel, lane, sequence = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

-- include: lib/lane.lua (defines seen)
local count = redis.call('GET', semaphore)
local answer, change = '1', permits
if not count then answer, change = '3', missing end
if change == '-1' then answer = '0' end
-- Publish first: if Redis refuses the message, nothing has changed. Redisson expects a positive number of permits in
-- the message. INCRBY refuses a value that is not a number.
local free, heard = (tonumber(count or '0') or 0) + change, 2
if free > 0 then heard = redis.call(publish, channel, free) end
-- At maxmemory, Redis refuses a script whose first write needs memory. This write needs none.
local kept = redis.call('PEXPIRE', requests, '3600000')
redis.call('HSET', requests, lane, sequence .. ':' .. answer)
if kept == 0 then redis.call('PEXPIRE', requests, '3600000') end
if answer == '0' then return 0 end
if type(redis.pcall('INCRBY', semaphore, change)) ~= 'number' then
  -- Redis refused a command halfway. Restore the lane, so that a repeat runs completely, and run the command again to
  -- return its error.
  redis.call('HSET', requests, lane, seen or '0:-4')
  redis.call('INCRBY', semaphore, change)
end
if not count then return 3 end
if heard < 2 then return 2 end
return 1
