-- fair-lock/release: releases what the given owners have, the lock or places in the queue, and wakes the head
-- KEYS[1]  lock      hash    owner -> hold count
-- KEYS[2]  queue     list    owners that wait, head first
-- KEYS[3]  timeouts  zset    owner -> epoch ms from which a JVM takes its place for abandoned
-- KEYS[4]  alive     zset    owner of ours -> epoch ms from which it counts as dead
-- ARGV[1]     publish  string  PUBLISH or SPUBLISH
-- ARGV[2]     channel  string  what the wake-up channel of each waiter begins with: channel:owner
-- ARGV[3]     wait     int     ms that each of our waiters adds to the timeouts of those behind it
-- ARGV[4..n]  owners   string  owner ids; more than one when it is unknown which of them has the lock
-- Returns  1  one of them had the lock: it is free, and the head was told
--          0  none of them had it
-- Used by  src/redis/scripts/fair-lock.ts (release)

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
-- In one command: where a slot is leaving this node, a second one would not find the key that the first has emptied.
local removed = redis.call('HDEL', lock, unpack(ARGV, 4))
-- Also when it was the head that left while the lock was free: its wake-up goes to the next. Where the slot is leaving,
-- Redis refuses to look for the key that has just been emptied.
if head and redis.pcall('EXISTS', lock) ~= 1 then redis.call(publish, channel .. ':' .. head, '0') end
if removed == 0 then return 0 end
return 1
