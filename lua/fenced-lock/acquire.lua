-- fenced-lock/acquire: takes a free lock for an owner without a hold and draws its fencing token, or parks its client
-- KEYS[1]  lock        hash    owner -> hold count
-- KEYS[2]  token       string  the last token; it outlives the lock
-- ARGV[1]  owner       string  owner id
-- ARGV[2]  lease       int     ms
-- ARGV[3]  tokens      string  counter, or clock: at least this server's time in microseconds
-- ARGV[4]  waiters     string  the roll, a key of the same slot: station -> epoch ms since which it waits
-- ARGV[5]  station     string  that of the client in the roll; '' = do not park it
-- ARGV[6]  since       int     epoch ms since which the owner waits
-- ARGV[7]  registered  int     1 = the client may be in the roll; 0 = it is not
-- ARGV[8]  notAfter    int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  text      taken, hold count 1: the token
--          n         ms until the lease of the holder ends; -1 = no expiry
--          an array  the client is parked: see lib/park
--          -3        too late; nothing changed

local lock, token = KEYS[1], KEYS[2]
local owner, lease, tokens, waiters, station = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local since, registered, notAfter = ARGV[6], ARGV[7], tonumber(ARGV[8])

local time = redis.call('TIME')
if notAfter > 0 and time[1] * 1000 + time[2] / 1000 > notAfter then return -3 end
local drawn = false
local held = redis.call('EXISTS', lock) == 1
if held then
  if redis.call('HEXISTS', lock, owner) == 0 then
    local left = redis.call('PTTL', lock)
    -- include: lib/foreign-hash.lua
    -- include: lib/park.lua (defines busy)
    return busy
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
if registered == '1' then redis.pcall('ZREM', waiters, station) end
return drawn
