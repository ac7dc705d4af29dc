-- latch/try-set: closes an open latch with a count
-- KEYS[1]  latch     string  count; an open latch has no key
-- KEYS[2]  requests  hash    lane of this client -> sequence:answer
-- ARGV[1]  count     int     number of count-downs that open the latch
-- ARGV[2]  publish   string  PUBLISH or SPUBLISH
-- ARGV[3]  channel   string  wake-up channel of this latch
-- ARGV[4]  lane      int     lane of the request
-- ARGV[5]  sequence  int     number of the request; it increases with each request of the lane
-- ARGV[6]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  1   closed; published with the payload 1, which Redisson expects
--          0   the latch has a count; nothing changed
--          n   the answer of the first run, if the request has run before
--          WRONGTYPE  the string of this name is not a count; nothing changed

local latch, requests = KEYS[1], KEYS[2]
local count, publish, channel, lane, sequence, notAfter = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])

-- include: lib/not-after.lua
-- include: lib/lane.lua (defines seen)
-- Redisson stores any count. A latch with a count below 1 is open, as without a key.
local before = tonumber(redis.call('GET', latch) or '0')
if not before then return redis.error_reply('WRONGTYPE the string of this name is not a count') end
local closes = before <= 0
-- Publish first: if Redis refuses the message, nothing has changed.
if closes then redis.call(publish, channel, '1') end
redis.call('HSET', requests, lane, sequence .. ':' .. (closes and '1' or '0'))
local set = redis.pcall('PEXPIRE', requests, '3600000')
-- Overwrite the key and do not delete it: while the slot migrates to another node, Redis refuses commands on a missing
-- key.
if type(set) == 'number' and closes then set = redis.pcall('SET', latch, count) end
if type(set) == 'table' and set.err then
  -- include: lib/lane-undo.lua
  redis.call('SET', latch, count)
end
if not closes then return 0 end
return 1
