-- lib/inspect-object: reads what Redis has under one name
-- Defines  inspect  function: type of the object, its PTTL, its fields and values or its value, waiters, token, permits, and
--                   the numbers of fields, waiters and permits, of which at most `most` of each are read; 0 = all
-- Hashes, strings and sorted sets of such a name may be an application's, and of any size. So only what looks like a lock
-- or a synchronizer is read.

local function inspect(object, queue, token, taken, most)
  local kind = redis.call('TYPE', object).ok
  local content, size = {}, 0
  if kind == 'hash' then
    size = redis.call('HLEN', object)
    local client = string.rep('%x', 8) .. string.rep('%-%x%x%x%x', 4) .. string.rep('%x', 8)
    local fields, step, isLock = {}, 1, false
    if size <= 1000 then
      fields = redis.call('HKEYS', object)
    else
      -- Most fields of a lock with so many name an owner.
      fields, step = redis.call('HSCAN', object, '0', 'COUNT', '100')[2], 2
    end
    for i = 1, #fields, step do isLock = isLock or string.find(fields[i], client .. ':%-?%d') end
    if isLock and most == 0 then
      content = redis.call('HGETALL', object)
    elseif isLock then
      local read = { 'mode', redis.call('HGET', object, 'mode') }
      local owners = read[2] and size - 1 or size
      local some = owners > most and redis.call('HSCAN', object, '0', 'COUNT', most)[2] or redis.call('HGETALL', object)
      for i = 1, #some, 2 do
        if some[i] ~= 'mode' and #read < 2 + 2 * most then
          read[#read + 1] = some[i]
          read[#read + 1] = some[i + 1]
        end
      end
      for i = 1, #read, 2 do
        -- No field of a lock is longer. The field `mode` may be missing.
        if read[i + 1] and #read[i] + #read[i + 1] <= 1000 then
          content[#content + 1] = read[i]
          content[#content + 1] = read[i + 1]
        end
      end
    end
  elseif kind == 'string' and redis.call('STRLEN', object) <= 20 then
    -- No count is longer.
    content = { redis.call('GETRANGE', object, 0, 19) }
  end
  local waiters, waiting = {}, 0
  if redis.call('TYPE', queue).ok == 'list' then
    waiting = redis.call('LLEN', queue)
    for i, waiter in ipairs(redis.call('LRANGE', queue, 0, most - 1)) do waiters[i] = string.sub(waiter, 1, 1000) end
  end
  local permits, out = {}, 0
  -- The id of a permit has 16 bytes.
  if redis.call('TYPE', taken).ok == 'zset' and #redis.call('ZRANGE', taken, 0, 0)[1] == 16 then
    local time = redis.call('TIME')
    local now = math.floor(time[1] * 1000 + time[2] / 1000)
    out = redis.call('ZCARD', taken)
    local members = redis.call('ZRANGE', taken, 0, most - 1, 'WITHSCORES')
    for i = 1, #members, 2 do
      local id, ends = '', tonumber(members[i + 1])
      for j = 1, math.min(#members[i], 16) do id = id .. string.format('%02x', string.byte(members[i], j)) end
      permits[i] = id
      permits[i + 1] = ends >= 922337203685477 and -1 or math.max(ends - now, 0)
    end
  end
  local drawn = redis.call('TYPE', token).ok == 'string' and redis.call('GETRANGE', token, 0, 19) or ''
  return { kind, redis.call('PTTL', object), content, waiters, drawn, permits, { size, waiting, out } }
end
