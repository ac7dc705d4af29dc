-- permit-expirable-semaphore/update-lease: sets a longer or shorter lease for a taken permit
-- KEYS[1]  semaphore  string  free permits
-- KEYS[2]  taken      zset    permit id (16 bytes) -> epoch ms at which its lease ends
-- ARGV[1]  id        string  permit id in hex
-- ARGV[2]  lease     int     ms from now; -1 = no expiry
-- ARGV[3]  publish   string  PUBLISH or SPUBLISH
-- ARGV[4]  channel   string  wake-up channel of this semaphore
-- ARGV[5]  declared  int     number of permits of the semaphore; -1 = unknown
-- ARGV[6]  notAfter  int     server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  1   done
--          0   the permit is not taken, or its lease has expired

local semaphore, taken = KEYS[1], KEYS[2]
local id, lease, publish, channel = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local declared, notAfter = tonumber(ARGV[5]), tonumber(ARGV[6])

-- include: lib/now.lua (defines now)
local member = ''
for byte in string.gmatch(id, '%x%x') do member = member .. string.char(tonumber(byte, 16)) end
-- Read before the sweep: while the slot migrates to another node, Redis refuses reads of a set that the sweep has
-- emptied.
local before = tonumber(redis.call('ZSCORE', taken, member) or '-1')
-- include: lib/permit-count.lua (defines over)
-- include: lib/permit-sweep.lua
if before <= now then return 0 end
local ends = 922337203685477
if lease >= 0 and now + lease < ends then ends = now + lease end
-- A waiter tries again when the lease that it knows ends. Wake it for a lease that ends sooner. Publish first: if Redis
-- refuses the message, the old lease stays.
if ends < before then redis.call(publish, channel, '1') end
redis.call('ZADD', taken, ends, member)
return 1
