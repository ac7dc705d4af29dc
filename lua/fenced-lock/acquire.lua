-- fenced-lock/acquire: takes a free lock for an owner without a hold, and draws its fencing token
-- KEYS[1]  lock      hash    owner -> hold count
-- KEYS[2]  token     string  the last token; it outlives the lock
-- ARGV[1]  owner     string  owner id
-- ARGV[2]  lease     int     ms
-- ARGV[3]  tokens    string  counter, or clock: at least this server's time in microseconds
-- ARGV[4]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  text  taken, hold count 1: the token
--          n     ms until the lease of the holder ends; -1 = no expiry
--          -3    too late; nothing changed

local lock, token = KEYS[1], KEYS[2]
local owner, lease, tokens, notAfter = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

local time = redis.call('TIME')
if notAfter > 0 and time[1] * 1000 + time[2] / 1000 > notAfter then return -3 end
local drawn = false
local held = redis.call('EXISTS', lock) == 1
if held then
  if redis.call('HEXISTS', lock, owner) == 0 then
    local left = redis.call('PTTL', lock)
    -- include: lib/foreign-hash.lua
    return left
  end
  -- On a repeat, no other owner can have drawn a token since the first run.
  drawn = redis.call('GET', token)
end
if not drawn then
  -- include: lib/next-token.lua
  drawn = redis.call('GET', token)
end
-- On a repeat, the field may already count nested holds.
if not held then redis.call('HSET', lock, owner, '1') end
if redis.call('PTTL', lock) < tonumber(lease) then redis.call('PEXPIRE', lock, lease) end
return drawn
