-- lib/permit-count: reads the number of free permits, also if Redis has lost it alone, for example by eviction
-- Reads    semaphore, taken, now
--          declared  number of permits of the semaphore; -1 = unknown
-- Defines  over      number of permits whose leases have expired
--          count     free permits without those; nil = the number is missing and unknown, and stays so
--          made      the number is missing and known: the first change stores it
--          lifetime  arguments of the SET that stores it: both keys expire together
-- Read before the first write: while the slot migrates to another node, Redis refuses reads of an empty set.

local over = redis.call('ZCOUNT', taken, 0, now)
local stored = redis.call('GET', semaphore)
local count = stored and (tonumber(stored) or 0)
local made = not stored and declared >= 0
local lifetime = {}
if made then
  -- Permits that are taken stay taken.
  count = declared - redis.call('ZCARD', taken)
  local ttl = redis.call('PTTL', taken)
  if ttl > 0 then lifetime = { 'PX', ttl } end
end
