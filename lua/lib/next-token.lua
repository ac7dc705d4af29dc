-- lib/next-token: draws the next fencing token
-- Reads    token, tokens
--          time  the reply of TIME
-- Changes  the key of the token

redis.call('INCR', token)
-- A failover may have lost the last numbers; the time that passed since is more than what was counted.
local micros = time[1] * 1000000 + time[2]
if tokens == 'clock' and tonumber(redis.call('GET', token)) < micros then
  redis.call('SET', token, string.format('%.0f', micros))
end
-- Redisson's multi-lock gives the counter an expiry; what it counted must outlive that.
redis.call('PERSIST', token)
