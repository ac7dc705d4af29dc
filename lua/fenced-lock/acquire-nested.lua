-- fenced-lock/acquire-nested: adds a hold with its own token to a lock that the owner holds
-- KEYS[1]  lock      hash    owner -> hold count
-- KEYS[2]  token     string  the last token
-- ARGV[1]  owner     string  owner id
-- ARGV[2]  count     int     hold count after this call; absolute, so a repeated request counts once
-- ARGV[3]  lease     int     ms
-- ARGV[4]  tokens    string  counter, or clock: at least this server's time in microseconds
-- ARGV[5]  known     string  the last token that a hold of the owner has; '' = none
-- ARGV[6]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  text  held with that count: the token
--          0     the owner no longer holds the lock; nothing changed
--          -3    too late; nothing changed

local lock, token = KEYS[1], KEYS[2]
local owner, count, lease, tokens, known, notAfter = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])

local time = redis.call('TIME')
if notAfter > 0 and time[1] * 1000 + time[2] / 1000 > notAfter then return -3 end
-- Never create the field: a nested call must not restore a lost lock.
local counted = redis.call('HGET', lock, owner)
if not counted then return 0 end
local left = redis.call('PTTL', lock)
local drawn = false
-- The count is equal on a repeat, and after a release that did not arrive. In the second case the released hold has the
-- last token.
if counted == count and known ~= '' then drawn = redis.call('GET', token) end
if drawn == known then drawn = false end
if not drawn then
  -- include: lib/next-token.lua
  drawn = redis.call('GET', token)
end
redis.call('HSET', lock, owner, count)
if left >= 0 and left < tonumber(lease) then redis.call('PEXPIRE', lock, lease) end
return drawn
