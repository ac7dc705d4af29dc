-- fair-lock/release: gives back what any of the given owners has, the lock or a place in the queue, and wakes the head
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
  -- The dead of ours go, wherever they stand, and with them what they added to the timeouts behind them.
  if #gone > 0 then
    local leaves, leaving, staying, lowered, added = {}, {}, {}, {}, 0
    for _, each in ipairs(gone) do leaves[each] = true end
    for _, each in ipairs(redis.call('LRANGE', queue, 0, -1)) do
      if leaves[each] then
        leaving[#leaving + 1], added = each, added + wait
      else
        staying[#staying + 1], lowered[#lowered + 1] = each, added
      end
    end
    -- LREM walks along the queue. Where many leave, those that stay are queued anew instead: behind the others, so that the
    -- queue is not empty in between.
    if #leaving <= 8 then
      for _, each in ipairs(leaving) do redis.call('LREM', queue, 0, each) end
    else
      -- Removes nothing. Redis refuses it here, before the queue has anybody twice, or not at all.
      redis.call('LTRIM', queue, 0, -1)
      for i = 1, #staying, 1000 do redis.call('RPUSH', queue, unpack(staying, i, math.min(i + 999, #staying))) end
      redis.call('LTRIM', queue, #leaving + #staying, -1)
    end
    for i, each in ipairs(staying) do
      if lowered[i] > 0 then redis.call('ZADD', timeouts, 'XX', 'INCR', -lowered[i], each) end
    end
    -- Last: until then a repeat finds them again.
    for _, places in ipairs({ timeouts, alive }) do
      for i = 1, #gone, 1000 do redis.call('ZREM', places, unpack(gone, i, math.min(i + 999, #gone))) end
    end
    head, swept = staying[1], #leaving > 0
  end
  -- A JVM at the head goes by its timeout. Ours are alive if they are still there, whatever theirs says.
  while head and head ~= spared do
    local timeout = redis.call('ZSCORE', timeouts, head)
    if not timeout or tonumber(timeout) > now or redis.call('ZSCORE', alive, head) then break end
    swept = true
    redis.call('LPOP', queue)
    redis.call('ZREM', timeouts, head)
    head = redis.call('LINDEX', queue, 0)
  end
end
-- In one command: where a slot is leaving this node, a second one would not find the key that the first has emptied.
local removed = redis.call('HDEL', lock, unpack(ARGV, 4))
-- Also when it was the head that left while the lock was free: its wake-up goes to the next. Where the slot is leaving,
-- Redis refuses to look for the key that has just been emptied.
if head and redis.pcall('EXISTS', lock) ~= 1 then redis.call(publish, channel .. ':' .. head, '0') end
if removed == 0 then return 0 end
return 1
