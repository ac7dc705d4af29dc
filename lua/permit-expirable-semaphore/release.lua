-- permit-expirable-semaphore/release: gives permits back, all of them or none, and wakes waiters
-- KEYS[1]  semaphore  string  permits that are free
-- KEYS[2]  taken      zset    permit id in 16 bytes -> epoch ms at which its lease ends
-- ARGV[1]     publish  string  PUBLISH or SPUBLISH
-- ARGV[2]     channel  string  wake-up channel of this semaphore
-- ARGV[3..n]  ids      string  permit ids in hex
-- Returns  1  given back
--          0  none of them is taken, or their leases are over
--          2  some of them are not taken, or their leases are over; none is given back
-- Used by  src/redis/scripts/permit-expirable-semaphore.ts (release)

local semaphore, taken = KEYS[1], KEYS[2]
local publish, channel = ARGV[1], ARGV[2]

local time = redis.call('TIME')
local freed = redis.call('ZREMRANGEBYSCORE', taken, 0, math.floor(time[1] * 1000 + time[2] / 1000))
local ids, known = {}, 0
for i = 3, #ARGV do
  local id = ''
  for byte in string.gmatch(ARGV[i], '%x%x') do id = id .. string.char(tonumber(byte, 16)) end
  ids[i - 2] = id
  if redis.call('ZSCORE', taken, id) then known = known + 1 end
end
if known == #ids then
  for _, id in ipairs(ids) do freed = freed + redis.call('ZREM', taken, id) end
end
if freed > 0 then
  local free = redis.call('INCRBY', semaphore, freed)
  if free > 0 then redis.call(publish, channel, free) end
end
if known == 0 then return 0 end
if known < #ids then return 2 end
return 1
