-- lib/park: parks the client of an owner that found the lock busy, if it wants to wait
-- Reads    lock, waiters, station, since
--          left  ms until the lease of the holder ends
-- Defines  busy  the reply: left; or, of a parked client, an array of left, foreign and rank
--                foreign: 1 = a holder may belong to another library, or to an earlier version; 0 = it does not
--                rank: place of the client in the roll, from 0; -1 = Redis refuses the roll

local busy = left
if station ~= '' then
  -- The clients that read the roll have ids of version 8. Any other owner wakes nobody of it.
  local owners = redis.pcall('HLEN', lock)
  local foreign = (type(owners) == 'table' or owners > 100) and 1 or 0
  if foreign == 0 then
    for _, field in ipairs(redis.call('HKEYS', lock)) do
      if field ~= 'mode' and string.sub(field, 15, 15) ~= '8' then foreign = 1 end
    end
  end
  -- Keep the place of a client that was woken and found the lock taken again.
  local rank = redis.pcall('ZADD', waiters, 'NX', since, station)
  if type(rank) == 'number' then rank = redis.pcall('PEXPIRE', waiters, '60000') end
  if type(rank) == 'number' then rank = redis.pcall('ZRANK', waiters, station) end
  busy = { left, foreign, type(rank) == 'number' and rank or -1 }
end
