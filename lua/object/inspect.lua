-- object/inspect: reads everything that Redis has about one name, in one moment
-- KEYS[1]  object  any     the name itself
-- KEYS[2]  queue   list    waiters of a fair lock
-- KEYS[3]  token   string  fencing token
-- Returns  type of the object, its PTTL, its fields and values or its value, waiters, token ('' = none)
-- Used by  src/redis/scripts/object.ts (inspect)

local object, queue, token = KEYS[1], KEYS[2], KEYS[3]

local kind = redis.call('TYPE', object).ok
local content = {}
if kind == 'hash' then
  content = redis.call('HGETALL', object)
elseif kind == 'string' then
  content = { redis.call('GET', object) }
end
local waiters = {}
if redis.call('TYPE', queue).ok == 'list' then waiters = redis.call('LRANGE', queue, 0, -1) end
return { kind, redis.call('PTTL', object), content, waiters, redis.call('GET', token) or '' }
