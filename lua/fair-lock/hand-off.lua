-- fair-lock/hand-off: passes the lock to the next owner if it is the head of the queue, or frees it and wakes the head
-- KEYS[1]  lock      hash    owner -> hold count
-- KEYS[2]  queue     list    waiting owners, head first
-- KEYS[3]  timeouts  zset    owner -> epoch ms from which Redisson removes its place
-- KEYS[4]  alive     zset    owner from Holdfast -> epoch ms from which it counts as dead
-- ARGV[1]  from      string  owner that has the lock
-- ARGV[2]  to        string  next owner: the first waiter of the same client
-- ARGV[3]  lease     int     ms for the next owner
-- ARGV[4]  wait      int     ms that each waiter from Holdfast adds to the timeouts of the waiters behind it
-- ARGV[5]  publish   string  PUBLISH or SPUBLISH
-- ARGV[6]  channel   string  prefix of the wake-up channel of each waiter: channel:owner
-- ARGV[7]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  1   the next owner was the head of the queue and holds the lock, hold count 1
--          2   freed; published if the queue has a head
--          0   neither owner holds the lock; published if the lock is free and the queue has a head

local lock, queue, timeouts, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local from, to, lease, wait = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local publish, channel, notAfter = ARGV[5], ARGV[6], tonumber(ARGV[7])

-- include: lib/now.lua (defines now)
-- A repeat writes nothing: the new lease counts from the first attempt.
if redis.call('HEXISTS', lock, to) == 1 then return 1 end
local held = redis.call('HEXISTS', lock, from) == 1
-- This client lives, so its own waiter stays in the queue.
local gone = {}
for _, each in ipairs(redis.call('ZRANGEBYSCORE', alive, '-inf', now)) do
  if each ~= to then gone[#gone + 1] = each end
end
if redis.call('ZSCORE', alive, from) then gone[#gone + 1] = from end
local head, swept, spared = redis.call('LINDEX', queue, 0), false, to
-- include: lib/fair-sweep.lua
if held and head == to then
  -- Set the new field before deleting the old one: while the slot migrates to another node, Redis refuses commands on a
  -- missing key.
  redis.call('HSET', lock, to, '1')
  redis.call('HDEL', lock, from)
  redis.call('PEXPIRE', lock, lease)
  -- include: lib/fair-leave-head.lua
  return 1
end
if held then redis.call('HDEL', lock, from) end
-- Wake the head also if the lock was free. While the slot migrates to another node, Redis refuses EXISTS on the key that
-- was just emptied.
if head and redis.pcall('EXISTS', lock) ~= 1 then redis.call(publish, channel .. ':' .. head, '0') end
if not held then return 0 end
return 2
