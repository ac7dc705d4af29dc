-- semaphore/release: releases permits, and wakes waiters
-- KEYS[1]  semaphore  string  permits that are free
-- KEYS[2]  requests  hash    lane -> sequence:answer, of this client
-- ARGV[1]  permits   int     how many, at least 1
-- ARGV[2]  create    int     1 = also if there is no such semaphore, 0 = only if there is
-- ARGV[3]  publish   string  PUBLISH or SPUBLISH
-- ARGV[4]  channel   string  wake-up channel of this semaphore
-- ARGV[5]  lane      int     lane of this client that carries the request
-- ARGV[6]  sequence  int     number of the request, larger than all before it in its lane
-- Returns  1   released
--          2   released, and at most one client is subscribed: ours, if it waits
--          0   there is no such semaphore; nothing changed
--          -4  the lane carries a later request; nothing changed
--          n   what it answered when it ran
-- Used by  src/redis/scripts/semaphore.ts (release)

local semaphore, requests = KEYS[1], KEYS[2]
local permits, create, publish, channel, lane, sequence = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

-- include: lib/lane.lua
local count = redis.call('GET', semaphore)
local exists = create == '1' or count
-- A JVM's listener takes a number of permits; none below zero makes sense to it. The message comes first: if it is
-- refused, nothing has happened. What is no number INCRBY refuses.
local free, heard = (tonumber(count or '0') or 0) + permits, 2
if exists and free > 0 then heard = redis.call(publish, channel, free) end
-- At maxmemory Redis allows what begins with a write that needs no memory.
local kept = redis.call('PEXPIRE', requests, '3600000')
redis.call('HSET', requests, lane, sequence .. ':' .. (exists and '1' or '0'))
if kept == 0 then redis.call('PEXPIRE', requests, '3600000') end
if not exists then return 0 end
if type(redis.pcall('INCRBY', semaphore, permits)) ~= 'number' then
  -- Refused half-way: restore the lane, so that a repeat does all of it, and send the command again for its error.
  redis.call('HSET', requests, lane, seen or '0:-4')
  redis.call('INCRBY', semaphore, permits)
end
if heard < 2 then return 2 end
return 1
