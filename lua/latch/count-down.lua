-- latch/count-down: lowers the count of a latch by one and opens it at zero
-- KEYS[1]  latch     string  count; an open latch has no key
-- KEYS[2]  requests  hash    lane of this client -> sequence:answer
-- KEYS[3]  opened    string  epoch microseconds at which the latch last opened; expires after an hour
-- ARGV[1]  publish   string  PUBLISH or SPUBLISH
-- ARGV[2]  channel   string  wake-up channel of this latch
-- ARGV[3]  lane      int     lane of the request
-- ARGV[4]  sequence  int     number of the request; it increases with each request of the lane
-- ARGV[5]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  n   remaining count

local latch, requests, opened = KEYS[1], KEYS[2], KEYS[3]
local publish, channel, lane, sequence, notAfter = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])

-- include: lib/not-after.lua
-- include: lib/lane.lua (defines seen)
local count = redis.call('GET', latch)
-- DECR refuses a value that is not a number.
local left = count and (tonumber(count) or 2) - 1 or 0
-- Below zero, the latch was already open, and no caller waits.
local opens = count and left == 0
local time, before
if opens then
  time, before = redis.call('TIME'), redis.call('GET', opened)
  -- Publish first: if Redis refuses the message, nothing has changed.
  redis.call(publish, channel, '0')
end
if left < 0 then left = 0 end
redis.call('HSET', requests, lane, sequence .. ':' .. left)
local done = type(redis.pcall('PEXPIRE', requests, '3600000')) == 'number'
if done and opens then
  -- A waiter that checks after the next count was set still learns that the latch was open.
  done = redis.pcall('SET', opened, string.format('%d%06d', time[1], time[2]), 'PX', '3600000').ok
end
if done and left > 0 then
  done = type(redis.pcall('DECR', latch)) == 'number'
elseif done and count then
  done = type(redis.pcall('DEL', latch)) == 'number'
end
if not done then
  -- include: lib/lane-undo.lua
  -- 0: no opening before. A waiter that reads the value before it expires must not take it for one.
  if opens then redis.call('SET', opened, before or '0', 'PX', before and '3600000' or '1') end
  if left > 0 then redis.call('DECR', latch) end
  redis.call('DEL', latch)
end
return left
