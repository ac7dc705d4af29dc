-- semaphore/cancel: releases the permits that a request took, or prevents the request from taking permits
-- KEYS[1]  semaphore  string  free permits
-- KEYS[2]  requests  hash    lane of this client -> sequence:answer
-- ARGV[1]  permits   int     number of permits of the request; -1 = the number in its answer
-- ARGV[2]  publish   string  PUBLISH or SPUBLISH
-- ARGV[3]  channel   string  wake-up channel of this semaphore
-- ARGV[4]  lane      int     lane of the request
-- ARGV[5]  sequence  int     number of the request; it increases with each request of the lane
-- Returns  1  the request had run, and its permits are free again
--          0  the request has taken no permits and never will, or the semaphore that it took them of is no longer there

local semaphore, requests = KEYS[1], KEYS[2]
local permits, publish, channel, lane, sequence = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local taken = 0
local seen = redis.call('HGET', requests, lane)
if seen then
  local done, answer = string.match(seen, '^(%d+):(.*)$')
  if tonumber(done) > tonumber(sequence) then return 0 end
  if done == sequence and tonumber(answer) >= 0 then
    taken = permits
    if permits < 0 then taken = tonumber(answer) end
  end
end
-- A semaphore that was deleted, or that Redis has lost, does not get its number of permits from a cancellation.
local count = redis.call('GET', semaphore)
if not count then taken = 0 end
local free = taken
if taken > 0 then free = (tonumber(count) or 0) + taken end
-- Publish first: if Redis refuses the message, nothing has changed.
if free > 0 then redis.call(publish, channel, free) end
-- At maxmemory, Redis refuses a script whose first write needs memory. This write needs none.
local kept = redis.call('PEXPIRE', requests, '3600000')
redis.call('HSET', requests, lane, sequence .. ':-4')
if kept == 0 then redis.call('PEXPIRE', requests, '3600000') end
if taken == 0 then return 0 end
if type(redis.pcall('INCRBY', semaphore, taken)) ~= 'number' then
  -- Redis refused a command halfway. Restore the lane, so that a repeat runs completely, and run the command again to
  -- return its error.
  redis.call('HSET', requests, lane, seen)
  redis.call('INCRBY', semaphore, taken)
end
return 1
