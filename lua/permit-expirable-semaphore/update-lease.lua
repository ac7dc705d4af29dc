-- permit-expirable-semaphore/update-lease: gives a permit that is taken another lease, longer or shorter
-- KEYS[1]  semaphore  string  permits that are free
-- KEYS[2]  taken      zset    permit id in 16 bytes -> epoch ms at which its lease ends
-- ARGV[1]  id        string  permit id in hex
-- ARGV[2]  lease     int     ms from now; -1 = until it is released
-- ARGV[3]  publish   string  PUBLISH or SPUBLISH
-- ARGV[4]  channel   string  wake-up channel of this semaphore
-- ARGV[5]  notAfter  int     epoch ms of this server after which nothing is changed; 0 = no limit
-- Returns  1   done
--          0   it is not taken, or its lease is over
--          -3  too late; nothing changed
-- Used by  src/redis/scripts/permit-expirable-semaphore.ts (updateLease)

local semaphore, taken = KEYS[1], KEYS[2]
local id, lease, publish, channel, notAfter = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], tonumber(ARGV[5])

-- include: lib/now.lua
local member = ''
for byte in string.gmatch(id, '%x%x') do member = member .. string.char(tonumber(byte, 16)) end
-- Read before the sweep: a slot that is leaving this node refuses every later look at a set that the sweep has emptied.
local before = tonumber(redis.call('ZSCORE', taken, member) or '-1')
-- include: lib/permit-sweep.lua
if before <= now then return 0 end
local ends = 922337203685477
if lease >= 0 and now + lease < ends then ends = now + lease end
-- A waiter looks again when the lease that it knows of ends. This one ends sooner. The message comes first: if it is
-- refused, the lease is the old one.
if ends < before then redis.call(publish, channel, '1') end
redis.call('ZADD', taken, ends, member)
return 1
