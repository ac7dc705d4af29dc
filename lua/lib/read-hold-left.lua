-- lib/read-hold-left: how long a read hold lasts, also while a slot moves
-- Defines  leftOf  function: ms that a read hold of a lock has left, -2 = none; nil = its key may be at the other node
-- The old node refuses a key that it does not have. The new node takes it for missing, and refuses two keys of which
-- it has one.

local function leftOf(lock, hold)
  local left = redis.pcall('PTTL', hold)
  local found = left
  if left == -2 then found = redis.pcall('EXISTS', lock, hold) end
  if type(found) ~= 'table' then return left end
  -- Any other error is the error of this script.
  if not string.find(found.err, 'non local key', 1, true) then
    redis.call('PTTL', hold)
    redis.call('EXISTS', lock, hold)
  end
  return nil
end
