-- lib/permit-sweep: frees the permits whose leases have expired, and wakes waiters
-- Reads    semaphore, taken, publish, channel, now, over, count, made, lifetime
-- Reads of `taken` go before the sweep: while a slot migrates, Redis refuses reads of a set that the sweep has emptied.

-- Change both keys, or neither if Redis refuses one of the commands.
if over > 0 then
  local free = (count or 0) + over
  if free > 0 then redis.call(publish, channel, free) end
  if made then
    redis.call('SET', semaphore, count + over, unpack(lifetime))
  elseif count then
    redis.call('INCRBY', semaphore, over)
  end
  if type(redis.pcall('ZREMRANGEBYSCORE', taken, 0, now)) ~= 'number' then
    if made then
      redis.call('DEL', semaphore)
    elseif count then
      redis.call('INCRBY', semaphore, -over)
    end
    redis.call('ZREMRANGEBYSCORE', taken, 0, now)
  end
end
