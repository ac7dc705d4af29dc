-- fair-lock/refresh: keeps the places of one client's waiters, and names those that must try
-- KEYS[1]  lock      hash    owner -> hold count
-- KEYS[2]  queue     list    owners that wait, head first
-- KEYS[3]  timeouts  zset    owner -> epoch ms from which a JVM takes its place for abandoned
-- KEYS[4]  alive     zset    owner of ours -> epoch ms from which it counts as dead
-- ARGV[1]     notAfter       int     epoch ms of this server after which nothing is changed; 0 = no limit
-- ARGV[2]     wait           int     ms that each of our waiters adds to the timeouts of those behind it
-- ARGV[3]     waiterTimeout  int     ms for which the owners count as alive
-- ARGV[4]     publish        string  PUBLISH or SPUBLISH
-- ARGV[5]     channel        string  what the wake-up channel of each waiter begins with: channel:owner
-- ARGV[6..n]  owners         string  owner ids, in the order in which they came
-- Returns  an array: ms until the holder's lease ends if one of them is the head (-1 = unknown, or none is), then
--            the numbers of those that have to try, from 1: the head of a free lock, and owners without a place
--          -3  too late; nothing changed
-- Used by  src/redis/scripts/fair-lock.ts (refresh)

local lock, queue, timeouts, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local notAfter, wait, waiterTimeout = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local publish, channel = ARGV[4], ARGV[5]

-- include: lib/now.lua

local reply, number, queued = { -1 }, {}, {}
local members = redis.call('LRANGE', queue, 0, -1)
for _, each in ipairs(members) do queued[each] = true end
for i = 6, #ARGV do
  number[ARGV[i]] = i - 5
  if queued[ARGV[i]] then
    -- First of all: a client that was suspended does not remove its own waiters.
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

-- Each owner in front subtracts its own wait when its turn comes. When half a wait is missing at the end of that it is
-- made up for, and for those behind too, since they rest on it.
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
  -- No other script tells the head that it has become the head of a free lock.
  redis.call(publish, channel .. ':' .. head, '0')
end
return reply
