-- lib/read-hold-addable: refuses a new read hold whose key this node of a migrating slot does not accept
-- Reads    lock
--          hold   the key of the read hold
--          found  the reply of Redis for that key

if type(found) == 'table' then
  if string.find(found.err, 'non local key', 1, true) then
    return redis.error_reply('TRYAGAIN the slot is moving, and a read hold cannot be added here')
  end
  -- Run the commands again, so that the script returns any other error.
  redis.call('PTTL', hold)
  redis.call('EXISTS', lock, hold)
end
