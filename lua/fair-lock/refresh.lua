-- fair-lock/refresh: keeps the waiters of one client in the queue, and names those that must try
-- KEYS[1]  lock      hash    owner -> hold count
-- KEYS[2]  queue     list    waiting owners, head first
-- KEYS[3]  timeouts  zset    owner -> epoch ms from which Redisson removes its place
-- KEYS[4]  alive     zset    owner from Holdfast -> epoch ms from which it counts as dead
-- ARGV[1]     notAfter       int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- ARGV[2]     wait           int     ms that each waiter from Holdfast adds to the timeouts of the waiters behind it
-- ARGV[3]     waiterTimeout  int     ms for which the owners count as alive
-- ARGV[4]     publish        string  PUBLISH or SPUBLISH
-- ARGV[5]     channel        string  prefix of the wake-up channel of each waiter: channel:owner
-- ARGV[6..n]  owners         string  owner ids, in order of arrival
-- Returns  an array: ms until the lease of the holder ends if one of the owners is the head, otherwise -1; then the
--            numbers, from 1, of the owners that must try: the head of a free lock, and owners without a place

local lock, queue, timeouts, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local notAfter, wait, waiterTimeout = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local publish, channel = ARGV[4], ARGV[5]

-- include: lib/now.lua (defines now)

local reply, number, queued = { -1 }, {}, {}
local members = redis.call('LRANGE', queue, 0, -1)
for _, each in ipairs(members) do queued[each] = true end
for i = 6, #ARGV do
  number[ARGV[i]] = i - 5
  if queued[ARGV[i]] then
    -- Do this before the sweep: a client that was suspended must not remove its own waiters.
    redis.call('ZADD', alive, now + waiterTimeout, ARGV[i])
  else
    redis.call('ZREM', alive, ARGV[i])
    redis.call('ZREM', timeouts, ARGV[i])
    reply[#reply + 1] = i - 5
  end
end

local gone, head, swept = redis.call('ZRANGEBYSCORE', alive, '-inf', now), redis.call('LINDEX', queue, 0), false
local spared = nil
-- include: lib/fair-sweep.lua
if swept then members = redis.call('LRANGE', queue, 0, -1) end

-- Each owner in front subtracts one wait from a timeout when it leaves the queue. If more than half a wait would then
-- be missing, raise this timeout and all timeouts behind it, which build on it.
local raised = 0
for place, each in ipairs(members) do
  local timeout = number[each] and redis.call('ZSCORE', timeouts, each)
  if timeout then
    local missing = now + place * wait - timeout - raised
    if 2 * missing > wait then raised = raised + missing end
  end
  if raised > 0 then redis.call('ZADD', timeouts, 'XX', 'INCR', raised, each) end
end

if not head then return reply end
local free = redis.call('EXISTS', lock) == 0
if number[head] then
  if free then reply[#reply + 1] = number[head] else reply[1] = redis.call('PTTL', lock) end
elseif free and swept then
  -- No other script wakes the owner that has become the head of a free lock.
  redis.call(publish, channel .. ':' .. head, '0')
end
return reply
