-- lib/fair-sweep: removes the given owners from the queue, and abandoned places of Redisson at its head
-- Reads    queue, timeouts, alive, wait, now
--          gone    owners to remove
--          spared  an owner that keeps its place at the head; nil = none
-- Changes  head    the head of the queue, before and after the sweep
--          swept   true if a place was removed

-- Remove the owners from any place in the queue, and subtract what they added to the timeouts behind them.
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
  -- LREM scans the queue. If many owners leave, append the remaining ones again and trim the old entries: the queue is
  -- never empty in between.
  if #leaving <= 8 then
    for _, each in ipairs(leaving) do redis.call('LREM', queue, 0, each) end
  else
    -- This command removes nothing. If Redis refuses writes, it refuses them here, before the queue has an owner twice.
    redis.call('LTRIM', queue, 0, -1)
    for i = 1, #staying, 1000 do redis.call('RPUSH', queue, unpack(staying, i, math.min(i + 999, #staying))) end
    redis.call('LTRIM', queue, #leaving + #staying, -1)
  end
  for i, each in ipairs(staying) do
    if lowered[i] > 0 then redis.call('ZADD', timeouts, 'XX', 'INCR', -lowered[i], each) end
  end
  -- Delete these entries last: until then a repeat finds the owners again.
  for _, places in ipairs({ timeouts, alive }) do
    for i = 1, #gone, 1000 do redis.call('ZREM', places, unpack(gone, i, math.min(i + 999, #gone))) end
  end
  head, swept = staying[1], #leaving > 0
end
-- Remove a waiter of Redisson at the head if its timeout has passed. A waiter from Holdfast stays as long as it is in
-- `alive`.
while head and head ~= spared do
  local timeout = redis.call('ZSCORE', timeouts, head)
  if not timeout or tonumber(timeout) > now or redis.call('ZSCORE', alive, head) then break end
  swept = true
  redis.call('LPOP', queue)
  redis.call('ZREM', timeouts, head)
  head = redis.call('LINDEX', queue, 0)
end
