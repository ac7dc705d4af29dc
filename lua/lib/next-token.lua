-- lib/next-token: draws the next fencing token
-- Reads    token, tokens
--          time  the reply of TIME
-- Changes  the key of the token

redis.call('INCR', token)
-- A failover may have lost the last tokens. The time in microseconds is larger than every token that was lost.
local micros = time[1] * 1000000 + time[2]
if tokens == 'clock' and tonumber(redis.call('GET', token)) < micros then
  redis.call('SET', token, string.format('%.0f', micros))
end
-- Redisson's multi-lock sets an expiry on the counter. Remove it: tokens must never repeat.
redis.call('PERSIST', token)
