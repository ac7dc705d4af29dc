-- semaphore/cancel: undoes what a request took, or keeps a request that has not run from taking anything
-- KEYS[1]  semaphore  string  permits that are free
-- KEYS[2]  requests  hash    lane -> sequence:answer, of this client
-- ARGV[1]  permits   int     that the request takes; -1 = as many as it answered
-- ARGV[2]  publish   string  PUBLISH or SPUBLISH
-- ARGV[3]  channel   string  wake-up channel of this semaphore
-- ARGV[4]  lane      int     lane of this client that carries the request
-- ARGV[5]  sequence  int     number of the request, larger than all before it in its lane
-- Returns  1  it had run, and what it took is free again
--          0  it has taken nothing and never will
-- Used by  src/redis/scripts/semaphore.ts (cancel)

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
local free = taken
if taken > 0 then free = (tonumber(redis.call('GET', semaphore) or '0') or 0) + taken end
-- The message comes first: if it is refused, nothing has happened.
if free > 0 then redis.call(publish, channel, free) end
-- At maxmemory Redis allows what begins with a write that needs no memory.
local kept = redis.call('PEXPIRE', requests, '3600000')
redis.call('HSET', requests, lane, sequence .. ':-4')
if kept == 0 then redis.call('PEXPIRE', requests, '3600000') end
if taken == 0 then return 0 end
if type(redis.pcall('INCRBY', semaphore, taken)) ~= 'number' then
  -- Refused half-way: restore the lane, so that a repeat does all of it, and send the command again for its error.
  redis.call('HSET', requests, lane, seen)
  redis.call('INCRBY', semaphore, taken)
end
return 1
