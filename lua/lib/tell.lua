-- lib/tell: wakes clients that are parked in the roll, or lets them stand by
-- Reads    waiters, publish, own
-- Defines  tell  function: tells the oldest clients of the roll, until `most` have got the message. '1': the lock is free;
--                the client leaves the roll. '2': stand by, in case the client that was woken does nothing.
--                Returns their number. -1: none, because Redis refuses the roll. -2: none here, because the slot migrates.
-- The roll is no key of the scripts that free a lock: while the slot migrates, one of two keys may be at the other node. So
-- no error of the roll may end them.

local function tell(kind, most)
  local told, kept = 0, 0
  while told < most do
    local oldest = redis.pcall('ZRANGE', waiters, kept, kept)
    local station = oldest[1]
    local heard = oldest
    if station then
      heard = redis.pcall(publish, own .. string.sub(station, -36), kind .. ' ' .. station .. ' ' .. waiters)
    end
    if type(heard) == 'table' then
      if told > 0 or not heard.err then return told end
      return string.find(heard.err, 'non local key', 1, true) and -2 or -1
    end
    if heard > 0 then told = told + 1 end
    if heard > 0 and kind == '2' then
      kept = kept + 1
    elseif redis.pcall('ZREM', waiters, station) ~= 1 then
      -- Nobody has got a message and Redis refuses to remove the client: the next turn would find it again.
      return told > 0 and told or -1
    end
  end
  return told
end
