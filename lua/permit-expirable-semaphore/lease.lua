-- permit-expirable-semaphore/lease: reads the remaining lease of a permit
-- KEYS[1]  semaphore  string  free permits
-- KEYS[2]  taken      zset    permit id (16 bytes) -> epoch ms at which its lease ends
-- ARGV[1]  id        string  permit id in hex
-- ARGV[2]  publish   string  PUBLISH or SPUBLISH
-- ARGV[3]  channel   string  wake-up channel of this semaphore
-- ARGV[4]  declared  int     number of permits of the semaphore; -1 = unknown
-- Returns  n   remaining lease in ms
--          -1  the permit has no expiry
--          -2  the permit is not taken, or its lease has expired

local semaphore, taken = KEYS[1], KEYS[2]
local id, publish, channel, declared = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

local time = redis.call('TIME')
local now = math.floor(time[1] * 1000 + time[2] / 1000)
local member = ''
for byte in string.gmatch(id, '%x%x') do member = member .. string.char(tonumber(byte, 16)) end
-- Read before the sweep: while the slot migrates to another node, Redis refuses reads of a set that the sweep has
-- emptied.
local ends = tonumber(redis.call('ZSCORE', taken, member) or '-1')
-- include: lib/permit-count.lua (defines over)
-- include: lib/permit-sweep.lua
if ends <= now then return -2 end
if ends >= 922337203685477 then return -1 end
return ends - now
