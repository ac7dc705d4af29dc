-- lib/fair-sweep: removes the places of the given owners, and at the head those that a JVM has abandoned
-- Reads    queue, timeouts, alive, wait, now
--          gone    owners to remove
--          spared  an owner that keeps its place at the head; nil = none
-- Changes  head    from the head of the queue before to the head after
--          swept   to true if a place was removed

-- Owners go wherever they stand, and with them what they added to the timeouts behind them.
if #gone > 0 then
  local leaves, leaving, staying, lowered, added = {}, {}, {}, {}, 0
  for _, each in ipairs(gone) do leaves[each] = true end
  for _, each in ipairs(redis.call('LRANGE', queue, 0, -1)) do
    if leaves[each] then
      leaving[#leaving + 1], added = each, added + wait
    else
      staying[#staying + 1], lowered[#lowered + 1] = each, added
    end
  end
  -- LREM walks along the queue. Where many leave, those that stay are queued again instead: behind the others, so that
  -- the queue is not empty in between.
  if #leaving <= 8 then
    for _, each in ipairs(leaving) do redis.call('LREM', queue, 0, each) end
  else
    -- Removes nothing. Redis refuses it here, before the queue has anybody twice, or not at all.
    redis.call('LTRIM', queue, 0, -1)
    for i = 1, #staying, 1000 do redis.call('RPUSH', queue, unpack(staying, i, math.min(i + 999, #staying))) end
    redis.call('LTRIM', queue, #leaving + #staying, -1)
  end
  for i, each in ipairs(staying) do
    if lowered[i] > 0 then redis.call('ZADD', timeouts, 'XX', 'INCR', -lowered[i], each) end
  end
  -- Last: until then a repeat finds them again.
  for _, places in ipairs({ timeouts, alive }) do
    for i = 1, #gone, 1000 do redis.call('ZREM', places, unpack(gone, i, math.min(i + 999, #gone))) end
  end
  head, swept = staying[1], #leaving > 0
end
-- A JVM at the head goes by its timeout. Ours are alive if they are still there, whatever theirs says.
while head and head ~= spared do
  local timeout = redis.call('ZSCORE', timeouts, head)
  if not timeout or tonumber(timeout) > now or redis.call('ZSCORE', alive, head) then break end
  swept = true
  redis.call('LPOP', queue)
  redis.call('ZREM', timeouts, head)
  head = redis.call('LINDEX', queue, 0)
end
