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

local head = redis.call('LINDEX', queue, 0)
if head or redis.call('EXISTS', alive) == 1 then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  -- The dead of ours go, wherever they stand, and with them what they added to the timeouts behind them.
  local gone = redis.call('ZRANGEBYSCORE', alive, '-inf', now)
  for i = 4, #ARGV do
    if redis.call('ZSCORE', alive, ARGV[i]) then gone[#gone + 1] = ARGV[i] end
  end
  if #gone > 0 then
    local leaves, added = {}, 0
    for _, each in ipairs(gone) do leaves[each] = true end
    for _, each in ipairs(redis.call('LRANGE', queue, 0, -1)) do
      if leaves[each] then
        added = added + wait
        redis.call('LREM', queue, 0, each)
      elseif added > 0 then
        redis.call('ZADD', timeouts, 'XX', 'INCR', -added, each)
      end
    end
    -- Last: until then a repeat finds them again.
    for _, each in ipairs(gone) do
      redis.call('ZREM', timeouts, each)
      redis.call('ZREM', alive, each)
    end
    head = redis.call('LINDEX', queue, 0)
  end
  -- A JVM at the head goes by its timeout. Ours are alive if they are still there, whatever theirs says.
  while head do
    local timeout = redis.call('ZSCORE', timeouts, head)
    if not timeout or tonumber(timeout) > now or redis.call('ZSCORE', alive, head) then break end
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
