-- lib/fair-leave-head: removes the head, which takes the lock, from the queue
-- Reads    queue, timeouts, alive, wait
--          head  the head of the queue

redis.call('LPOP', queue)
redis.call('ZREM', timeouts, head)
redis.call('ZREM', alive, head)
local behind = redis.call('ZRANGE', timeouts, 0, -1, 'WITHSCORES')
for from = 1, #behind, 1000 do
  local lowered = {}
  for i = from, math.min(from + 999, #behind), 2 do
    lowered[#lowered + 1] = string.format('%.0f', behind[i + 1] - wait)
    lowered[#lowered + 1] = behind[i]
  end
  redis.call('ZADD', timeouts, unpack(lowered))
end
