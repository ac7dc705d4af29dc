-- object/inspect: reads all data of one name at one moment
-- KEYS[1]  object  any     the object with this name
-- KEYS[2]  queue   list    waiters of a fair lock
-- KEYS[3]  token   string  fencing token
-- KEYS[4]  taken   zset    permit id (16 bytes) -> epoch ms at which its lease ends
-- Returns  type of the object, its PTTL, its fields and values or its value, waiters, token ('' = none), and in turn
--            the permit ids in hex and the remaining lease of each permit in ms (-1 = no expiry)
-- Used by  src/redis/scripts/object.ts (inspect)

local object, queue, token, taken = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local kind = redis.call('TYPE', object).ok
local content = {}
if kind == 'hash' then
  content = redis.call('HGETALL', object)
elseif kind == 'string' then
  content = { redis.call('GET', object) }
end
local waiters = {}
if redis.call('TYPE', queue).ok == 'list' then waiters = redis.call('LRANGE', queue, 0, -1) end
local permits = {}
if redis.call('TYPE', taken).ok == 'zset' then
  local time = redis.call('TIME')
  local now = math.floor(time[1] * 1000 + time[2] / 1000)
  local members = redis.call('ZRANGE', taken, 0, -1, 'WITHSCORES')
  for i = 1, #members, 2 do
    local id, ends = '', tonumber(members[i + 1])
    for j = 1, #members[i] do id = id .. string.format('%02x', string.byte(members[i], j)) end
    permits[i] = id
    permits[i + 1] = ends >= 922337203685477 and -1 or math.max(ends - now, 0)
  end
end
return { kind, redis.call('PTTL', object), content, waiters, redis.call('GET', token) or '', permits }
