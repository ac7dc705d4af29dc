-- latch/count-down: lowers the count of a latch by one and opens it at zero
-- KEYS[1]  latch     string  count; an open latch has no key
-- KEYS[2]  requests  hash    lane -> sequence:answer, of this client
-- KEYS[3]  opened    string  epoch microseconds at which the latch was last opened; it expires after an hour
-- ARGV[1]  publish   string  PUBLISH or SPUBLISH
-- ARGV[2]  channel   string  wake-up channel of this latch
-- ARGV[3]  lane      int     lane of this client that carries the request
-- ARGV[4]  sequence  int     number of the request, larger than all before it in its lane
-- ARGV[5]  notAfter  int     epoch ms of this server after which nothing is changed; 0 = no limit
-- Returns  n   count that is left
--          -3  too late; nothing changed
--          -4  cancelled, or the lane carries a later request; nothing changed
-- Used by  src/redis/scripts/latch.ts (countDown)

local latch, requests, opened = KEYS[1], KEYS[2], KEYS[3]
local publish, channel, lane, sequence, notAfter = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])

-- include: lib/not-after.lua
-- include: lib/lane.lua
local count = redis.call('GET', latch)
-- What is no number DECR refuses.
local left = count and (tonumber(count) or 2) - 1 or 0
-- Below zero the latch was open already, and no caller waits.
local opens = count and left == 0
local time, before
if opens then
  time, before = redis.call('TIME'), redis.call('GET', opened)
  -- The message comes first: if it is refused, nothing has happened.
  redis.call(publish, channel, '0')
end
if left < 0 then left = 0 end
redis.call('HSET', requests, lane, sequence .. ':' .. left)
local done = type(redis.pcall('PEXPIRE', requests, '3600000')) == 'number'
if done and opens then
  -- A waiter that looks after the next count was set still learns that the latch was open.
  done = redis.pcall('SET', opened, string.format('%d%06d', time[1], time[2]), 'PX', '3600000').ok
end
if done and left > 0 then
  done = type(redis.pcall('DECR', latch)) == 'number'
elseif done and count then
  done = type(redis.pcall('DEL', latch)) == 'number'
end
if not done then
  -- Refused half-way: restore the lane, so that a repeat does all of it, and send the command again for its error.
  redis.call('HSET', requests, lane, seen or '0:-4')
  redis.call('PEXPIRE', requests, '3600000')
  if opens then redis.call('SET', opened, before or '1', 'PX', before and '3600000' or '1') end
  if left > 0 then redis.call('DECR', latch) end
  redis.call('DEL', latch)
end
return left
