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
--          n    ms after which to look again, if no message comes; -1 = nobody knows
--          -3   too late; nothing changed
--          WRONGTYPE  the hash of this name is not a lock; nothing changed
-- Used by  src/redis/scripts/fair-lock.ts (acquire)

local lock, queue, timeouts, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, lease, wait, waiterTimeout = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local publish, channel, notAfter = ARGV[5], ARGV[6], tonumber(ARGV[7])

local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
if notAfter > 0 and now > notAfter then return -3 end
now = math.floor(now)

-- Read before anything is written: a key of another type refuses the script here.
local free = redis.call('EXISTS', lock) == 0
local mine = not free and redis.call('HEXISTS', lock, owner) == 1
if not free and not mine then
  local left = redis.call('PTTL', lock)
  -- A lock has a lease. A hash that has none, and no field with an owner in it, is not a lock.
  if left == -1 then
    local client, isLock = string.rep('%x', 8) .. string.rep('%-%x%x%x%x', 4) .. string.rep('%x', 8), false
    for _, field in ipairs(redis.call('HKEYS', lock)) do isLock = isLock or string.find(field, client .. ':%-?%d') end
    if not isLock then return redis.error_reply('WRONGTYPE the hash of this name is not a lock') end
  end
end
local queued = waiterTimeout > 0 and redis.call('ZSCORE', timeouts, owner)
-- A client that stood still does not take its own waiter for dead.
local dies = queued and redis.call('ZSCORE', alive, owner)
if dies and tonumber(dies) <= now then redis.call('ZADD', alive, now + waiterTimeout, owner) end
local gone, head, swept = redis.call('ZRANGEBYSCORE', alive, '-inf', now), redis.call('LINDEX', queue, 0), false
local spared = owner
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
-- Nobody else will tell the head that it has become the head of a free lock.
if swept and free then redis.call(publish, channel .. ':' .. head, '0') end
if waiterTimeout > 0 and not queued then
  local tail = head and redis.call('ZSCORE', timeouts, redis.call('LINDEX', queue, -1))
  local timeout = (tail or now + redis.call('PTTL', lock)) + wait
  -- Everybody in front takes its own wait off when its turn comes: after all of them there must be one left.
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
