-- lib/permit-sweep: frees the permits whose leases have expired, and wakes waiters
-- Reads    semaphore, taken, publish, channel, now
-- Defines  over  number of permits that it freed
-- Reads of `taken` go before the sweep: while a slot migrates, Redis refuses reads of a set that the sweep has emptied.

-- Change both keys, or neither if Redis refuses one of the commands.
local over = redis.call('ZCOUNT', taken, 0, now)
if over > 0 then
  local free = (tonumber(redis.call('GET', semaphore) or '0') or 0) + over
  if free > 0 then redis.call(publish, channel, free) end
  redis.call('INCRBY', semaphore, over)
  if type(redis.pcall('ZREMRANGEBYSCORE', taken, 0, now)) ~= 'number' then
    redis.call('INCRBY', semaphore, -over)
    redis.call('ZREMRANGEBYSCORE', taken, 0, now)
  end
end
