-- lib/inspect-object: reads everything that Redis has under one name
-- Defines  inspect  function: type of the object, its PTTL, its fields and values or its value, waiters, token, permits
-- A user's hash or sorted set of such a name may have millions of members, so it is not read whole.

local function inspect(object, queue, token, taken)
  local kind = redis.call('TYPE', object).ok
  local content = {}
  if kind == 'hash' then
    local whole = redis.call('HLEN', object) <= 1000
    if not whole then
      -- Most fields of a lock with so many name an owner.
      content = redis.call('HSCAN', object, '0', 'COUNT', '100')[2]
      local client = string.rep('%x', 8) .. string.rep('%-%x%x%x%x', 4) .. string.rep('%x', 8)
      for i = 1, #content, 2 do whole = whole or string.find(content[i], client .. ':%-?%d') end
    end
    if whole then content = redis.call('HGETALL', object) end
  elseif kind == 'string' then
    content = { redis.call('GET', object) }
  end
  local waiters = {}
  if redis.call('TYPE', queue).ok == 'list' then waiters = redis.call('LRANGE', queue, 0, -1) end
  local permits = {}
  -- The id of a permit has 16 bytes.
  if redis.call('TYPE', taken).ok == 'zset' and #redis.call('ZRANGE', taken, 0, 0)[1] == 16 then
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
  local drawn = redis.call('TYPE', token).ok == 'string' and redis.call('GET', token) or ''
  return { kind, redis.call('PTTL', object), content, waiters, drawn, permits }
end
