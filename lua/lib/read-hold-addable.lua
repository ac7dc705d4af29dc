-- lib/read-hold-addable: refuses a new read hold that a moving slot does not take here
-- Reads    lock
--          hold   the key of the read hold
--          found  what Redis says of that key

if type(found) == 'table' then
  if string.find(found.err, 'non local key', 1, true) then
    return redis.error_reply('TRYAGAIN the slot is moving, and a read hold cannot be added here')
  end
  -- Any other error is the error of this script.
  redis.call('PTTL', hold)
  redis.call('EXISTS', lock, hold)
end
