-- lock/acquire: takes a free lock for an owner without a hold, or parks its client
-- KEYS[1]  lock        hash    owner -> hold count
-- ARGV[1]  owner       string  owner id
-- ARGV[2]  lease       int     ms
-- ARGV[3]  waiters     string  the roll, a key of the same slot: station -> epoch ms since which it waits
-- ARGV[4]  station     string  that of the client in the roll; '' = do not park it
-- ARGV[5]  since       int     epoch ms since which the owner waits
-- ARGV[6]  registered  int     1 = the client may be in the roll; 0 = it is not
-- ARGV[7]  notAfter    int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  nil       taken, hold count 1
--          n         ms until the lease of the holder ends; -1 = no expiry
--          an array  the client is parked: see lib/park

local lock = KEYS[1]
local owner, lease, waiters, station, since = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local registered, notAfter = ARGV[6], tonumber(ARGV[7])

-- Keep the arguments as text: to turn a number back into text costs as much as the command that takes it.
-- include: lib/not-after.lua
if redis.call('EXISTS', lock) == 0 then
  redis.call('HSET', lock, owner, '1')
  redis.call('PEXPIRE', lock, lease)
  if registered == '1' then redis.pcall('ZREM', waiters, station) end
  return nil
end
-- An earlier attempt of this request set the field, and its reply was lost. Keep the count, because it may already
-- count nested holds, and never shorten the lease. So a repeat has no further effect.
if redis.call('HEXISTS', lock, owner) == 1 then
  if redis.call('PTTL', lock) < tonumber(lease) then redis.call('PEXPIRE', lock, lease) end
  return nil
end
local left = redis.call('PTTL', lock)
-- include: lib/foreign-hash.lua
-- include: lib/park.lua (defines busy)
return busy
