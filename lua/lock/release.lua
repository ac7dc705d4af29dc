-- lock/release: frees a lock that one of the given owners has, and wakes a waiter
-- KEYS[1]  lock     hash    owner -> hold count
-- KEYS[2]  channel  pubsub  wake-up channel of this lock
-- ARGV[1]     publish  string  PUBLISH or SPUBLISH
-- ARGV[2..n]  owners   string  owner ids; more than one when it is unknown which of them has the lock
-- Returns  1  freed and published
--          0  none of them holds the lock; nothing changed
-- Used by  src/redis/scripts/lock.ts (release)

local lock, channel = KEYS[1], KEYS[2]
local publish = ARGV[1]

local removed = 0
for i = 2, #ARGV do removed = removed + redis.call('HDEL', lock, ARGV[i]) end
if removed == 0 then return 0 end
redis.call(publish, channel, '0')
return 1
