-- fair-lock/acquire: takes a free lock if the owner is first in the queue, or adds the owner to the queue
-- KEYS[1]  lock      hash    owner -> hold count
-- KEYS[2]  queue     list    waiting owners, head first
-- KEYS[3]  timeouts  zset    owner -> epoch ms from which Redisson removes its place
-- KEYS[4]  alive     zset    owner from Holdfast -> epoch ms from which it counts as dead
-- ARGV[1]  owner          string  owner id
-- ARGV[2]  lease          int     ms
-- ARGV[3]  wait           int     ms that each waiter from Holdfast adds to the timeouts of the waiters behind it
-- ARGV[4]  waiterTimeout  int     ms for which the owner counts as alive; 0 = the owner does not wait
-- ARGV[5]  publish        string  PUBLISH or SPUBLISH
-- ARGV[6]  channel        string  prefix of the wake-up channel of each waiter: channel:owner
-- ARGV[7]  notAfter       int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  nil  taken, hold count 1
--          n    ms after which to try again without a message; -1 = unknown

local lock, queue, timeouts, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, lease, wait, waiterTimeout = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local publish, channel, notAfter = ARGV[5], ARGV[6], tonumber(ARGV[7])

-- include: lib/now.lua (defines now)

-- Read before the first write: a key of another type ends the script here.
local free = redis.call('EXISTS', lock) == 0
local mine = not free and redis.call('HEXISTS', lock, owner) == 1
if not free and not mine then
  local left = redis.call('PTTL', lock)
  -- include: lib/foreign-hash.lua
end
local queued = waiterTimeout > 0 and redis.call('ZSCORE', timeouts, owner)
-- Keep the owner alive before the sweep: a client that was suspended must not remove its own waiter.
local dies = queued and redis.call('ZSCORE', alive, owner)
if dies and tonumber(dies) <= now then redis.call('ZADD', alive, now + waiterTimeout, owner) end
local gone, head, swept = redis.call('ZRANGEBYSCORE', alive, '-inf', now), redis.call('LINDEX', queue, 0), false
local spared = owner
-- include: lib/fair-sweep.lua

if free and (not head or head == owner) then
  if head then
    -- include: lib/fair-leave-head.lua
  end
  redis.call('HSET', lock, owner, '1')
  redis.call('PEXPIRE', lock, lease)
  return nil
end
-- An earlier attempt of this request set the field, and its reply was lost. The field may already count nested holds.
if mine then
  if redis.call('PTTL', lock) < tonumber(lease) then redis.call('PEXPIRE', lock, lease) end
  return nil
end
-- No other script wakes the owner that has become the head of a free lock.
if swept and free then redis.call(publish, channel .. ':' .. head, '0') end
if waiterTimeout > 0 and not queued then
  local tail = head and redis.call('ZSCORE', timeouts, redis.call('LINDEX', queue, -1))
  local timeout = (tail or now + redis.call('PTTL', lock)) + wait
  -- Each owner in front subtracts one wait from this timeout when it leaves the queue. One wait must remain after that.
  local full = now + (redis.call('LLEN', queue) + 1) * wait
  -- Write `alive` first: the release finds the owner in it.
  redis.call('ZADD', alive, now + waiterTimeout, owner)
  redis.call('ZADD', timeouts, math.max(timeout, full), owner)
  redis.call('RPUSH', queue, owner)
  head = head or owner
end
-- Only the head needs to know when the lease of the holder ends.
if free or head ~= owner then return wait end
return redis.call('PTTL', lock)
