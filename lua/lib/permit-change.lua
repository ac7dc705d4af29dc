-- lib/permit-change: changes the number of free permits and stores the answer of the lane, or neither if Redis refuses one
-- Reads    semaphore, requests, lane, sequence, seen, count, made, lifetime
--          answer  answer of the request
--          change  what is added to the number; nil = nothing, also if it is not a number

redis.call('HSET', requests, lane, sequence .. ':' .. answer)
local done = redis.pcall('PEXPIRE', requests, '3600000')
if type(done) == 'number' and made then
  done = redis.pcall('SET', semaphore, count + change, unpack(lifetime)).ok and 1
elseif type(done) == 'number' and change then
  done = redis.pcall('INCRBY', semaphore, change)
end
if type(done) ~= 'number' then
  -- Restore the lane, so that a repeat runs completely, and run the command again to return its error.
  redis.call('HSET', requests, lane, seen or '0:-4')
  redis.call('PEXPIRE', requests, '3600000')
  if made then redis.call('SET', semaphore, count + change, unpack(lifetime)) end
  redis.call('INCRBY', semaphore, change)
end
