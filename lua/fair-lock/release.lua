-- fair-lock/release: releases the lock or the places of the given owners, and wakes the head of the queue
-- KEYS[1]  lock      hash    owner -> hold count
-- KEYS[2]  queue     list    waiting owners, head first
-- KEYS[3]  timeouts  zset    owner -> epoch ms from which Redisson removes its place
-- KEYS[4]  alive     zset    owner from Holdfast -> epoch ms from which it counts as dead
-- ARGV[1]     publish  string  PUBLISH or SPUBLISH
-- ARGV[2]     channel  string  prefix of the wake-up channel of each waiter: channel:owner
-- ARGV[3]     wait     int     ms that each waiter from Holdfast adds to the timeouts of the waiters behind it
-- ARGV[4..n]  owners   string  owner ids; several if the client does not know which of them has the lock
-- Returns  1  one of them had the lock: it is free; published if the queue has a head
--          0  none of them had it

local lock, queue, timeouts, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local publish, channel, wait = ARGV[1], ARGV[2], tonumber(ARGV[3])

local head, swept, spared = redis.call('LINDEX', queue, 0), false, nil
if head or redis.call('EXISTS', alive) == 1 then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local gone = redis.call('ZRANGEBYSCORE', alive, '-inf', now)
  for i = 4, #ARGV do
    if redis.call('ZSCORE', alive, ARGV[i]) then gone[#gone + 1] = ARGV[i] end
  end
  -- include: lib/fair-sweep.lua
end
-- Use one command: while the slot migrates to another node, Redis refuses a second command on a key that the first one
-- has emptied.
local removed = redis.call('HDEL', lock, unpack(ARGV, 4))
-- Wake the head also if the previous head has left while the lock was free: the new head needs the wake-up. While the
-- slot migrates to another node, Redis refuses EXISTS on the key that was just emptied.
if head and redis.pcall('EXISTS', lock) ~= 1 then redis.call(publish, channel .. ':' .. head, '0') end
if removed == 0 then return 0 end
return 1
