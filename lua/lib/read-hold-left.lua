-- lib/read-hold-left: reads the remaining lease of a read hold, also while a slot migrates
-- Defines  leftOf  function: remaining lease of a read hold in ms, -2 = none; nil = its key may be at the other node
-- The old node refuses a key that it does not have. The new node treats such a key as missing, and refuses a command
-- on two keys of which it has only one.

local function leftOf(lock, hold)
  local left = redis.pcall('PTTL', hold)
  local found = left
  if left == -2 then found = redis.pcall('EXISTS', lock, hold) end
  if type(found) ~= 'table' then return left end
  -- Run the commands again, so that the script returns any other error.
  if not string.find(found.err, 'non local key', 1, true) then
    redis.call('PTTL', hold)
    redis.call('EXISTS', lock, hold)
  end
  return nil
end
