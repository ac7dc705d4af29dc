-- latch/try-set: closes an open latch with a count
-- KEYS[1]  latch     string  count; an open latch has no key
-- KEYS[2]  requests  hash    lane -> sequence:answer, of this client
-- ARGV[1]  count     int     how many count-downs open it
-- ARGV[2]  publish   string  PUBLISH or SPUBLISH
-- ARGV[3]  channel   string  wake-up channel of this latch
-- ARGV[4]  lane      int     lane of this client that carries the request
-- ARGV[5]  sequence  int     number of the request, larger than all before it in its lane
-- ARGV[6]  notAfter  int     epoch ms of this server after which nothing is changed; 0 = no limit
-- Returns  1   closed; JVMs are told with the payload 1
--          0   it has a count already; nothing changed
--          -3  too late; nothing changed
--          -4  cancelled, or the lane carries a later request; nothing changed
--          n   what it answered when it ran
--          WRONGTYPE  the string of this name is not a count; nothing changed
-- Used by  src/redis/scripts/latch.ts (trySet)

local latch, requests = KEYS[1], KEYS[2]
local count, publish, channel, lane, sequence, notAfter = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])

-- include: lib/not-after.lua
-- include: lib/lane.lua
-- A JVM stores any count that it is given: with none left to count down it is open, as without a key.
local before = tonumber(redis.call('GET', latch) or '0')
if not before then return redis.error_reply('WRONGTYPE the string of this name is not a count') end
local closes = before <= 0
-- The message comes first: if it is refused, nothing has happened.
if closes then redis.call(publish, channel, '1') end
redis.call('HSET', requests, lane, sequence .. ':' .. (closes and '1' or '0'))
local set = redis.pcall('PEXPIRE', requests, '3600000')
-- Overwritten, not deleted: a slot that is leaving this node refuses a key that is not here.
if type(set) == 'number' and closes then set = redis.pcall('SET', latch, count) end
if type(set) == 'table' and set.err then
  -- Refused half-way: restore the lane, so that a repeat does all of it, and send the command again for its error.
  redis.call('HSET', requests, lane, seen or '0:-4')
  redis.call('PEXPIRE', requests, '3600000')
  redis.call('SET', latch, count)
end
if not closes then return 0 end
return 1
