-- fair-lock/acquire: takes a free lock for the owner whose turn it is, or gives the owner a place in the queue
-- KEYS[1]  lock      hash    owner -> hold count
-- KEYS[2]  queue     list    owners that wait, head first
-- KEYS[3]  timeouts  zset    owner -> epoch ms from which a JVM takes its place for abandoned
-- KEYS[4]  alive     zset    owner of ours -> epoch ms from which it counts as dead
-- ARGV[1]  owner          string  owner id
-- ARGV[2]  lease          int     ms
-- ARGV[3]  wait           int     ms that each of our waiters adds to the timeouts of those behind it
-- ARGV[4]  waiterTimeout  int     ms for which the owner counts as alive; 0 = it does not wait
-- ARGV[5]  publish        string  PUBLISH or SPUBLISH
-- ARGV[6]  channel        string  what the wake-up channel of each waiter begins with: channel:owner
-- ARGV[7]  notAfter       int     epoch ms of this server after which nothing is changed; 0 = no limit
-- Returns  nil  taken, hold count 1
--          n    ms after which to look again, if no message comes; -1 = unknown
--          -3   too late; nothing changed
--          WRONGTYPE  the hash of this name is not a lock; nothing changed
-- Used by  src/redis/scripts/fair-lock.ts (acquire)

local lock, queue, timeouts, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, lease, wait, waiterTimeout = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local publish, channel, notAfter = ARGV[5], ARGV[6], tonumber(ARGV[7])

-- include: lib/now.lua

-- Read before anything is written: a key of another type refuses the script here.
local free = redis.call('EXISTS', lock) == 0
local mine = not free and redis.call('HEXISTS', lock, owner) == 1
if not free and not mine then
  local left = redis.call('PTTL', lock)
  -- include: lib/foreign-hash.lua
end
local queued = waiterTimeout > 0 and redis.call('ZSCORE', timeouts, owner)
-- A client that was suspended does not remove its own waiter.
local dies = queued and redis.call('ZSCORE', alive, owner)
if dies and tonumber(dies) <= now then redis.call('ZADD', alive, now + waiterTimeout, owner) end
local gone, head, swept = redis.call('ZRANGEBYSCORE', alive, '-inf', now), redis.call('LINDEX', queue, 0), false
local spared = owner
-- include: lib/fair-sweep.lua

if free and (not head or head == owner) then
  if head then
    redis.call('LPOP', queue)
    redis.call('ZREM', timeouts, owner)
    redis.call('ZREM', alive, owner)
    local behind = redis.call('ZRANGE', timeouts, 0, -1, 'WITHSCORES')
    for from = 1, #behind, 1000 do
      local lowered = {}
      for i = from, math.min(from + 999, #behind), 2 do
        lowered[#lowered + 1] = string.format('%.0f', behind[i + 1] - wait)
        lowered[#lowered + 1] = behind[i]
      end
      redis.call('ZADD', timeouts, unpack(lowered))
    end
  end
  redis.call('HSET', lock, owner, '1')
  redis.call('PEXPIRE', lock, lease)
  return nil
end
-- The field is there when an earlier attempt of this request ran and its reply was lost; it may count nested holds by now.
if mine then
  if redis.call('PTTL', lock) < tonumber(lease) then redis.call('PEXPIRE', lock, lease) end
  return nil
end
-- No other script tells the head that it has become the head of a free lock.
if swept and free then redis.call(publish, channel .. ':' .. head, '0') end
if waiterTimeout > 0 and not queued then
  local tail = head and redis.call('ZSCORE', timeouts, redis.call('LINDEX', queue, -1))
  local timeout = (tail or now + redis.call('PTTL', lock)) + wait
  -- Each owner in front subtracts its own wait when its turn comes. After all of them one wait must remain.
  local full = now + (redis.call('LLEN', queue) + 1) * wait
  -- First what its release finds it by.
  redis.call('ZADD', alive, now + waiterTimeout, owner)
  redis.call('ZADD', timeouts, math.max(timeout, full), owner)
  redis.call('RPUSH', queue, owner)
  head = head or owner
end
-- Only the head has to know when the holder's lease ends.
if free or head ~= owner then return wait end
return redis.call('PTTL', lock)
