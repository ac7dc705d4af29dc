-- lib/foreign-hash: refuses a hash that is not a lock
-- Reads    lock
--          left  the reply of PTTL for it
-- Returns  WRONGTYPE  the hash of this name is not a lock; nothing changed

-- A lock has a lease. A hash that has none, and no field with an owner in it, is not a lock.
if left == -1 then
  local client, isLock = string.rep('%x', 8) .. string.rep('%-%x%x%x%x', 4) .. string.rep('%x', 8), false
  for _, field in ipairs(redis.call('HKEYS', lock)) do isLock = isLock or string.find(field, client .. ':%-?%d') end
  if not isLock then return redis.error_reply('WRONGTYPE the hash of this name is not a lock') end
end
