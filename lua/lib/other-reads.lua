-- lib/other-reads: finds the longest remaining lease of the readers that stay
-- Defines  otherReads  function: that lease in ms, 0 = no other reader has the lock
-- Reads    leftOf
-- The lock lasts as long as its longest read hold. If that is not among the holds that are released, `own` ms long, it is
-- one of the many that stay: a look at each of them would cost O(n^2) when n readers leave.

local function otherReads(lock, base, released, count, own)
  local whole, longest = redis.call('PTTL', lock), 0
  if own < whole and redis.call('HLEN', lock) > count + 65 then return whole end
  local fields = redis.call('HGETALL', lock)
  for f = 1, #fields, 2 do
    local reads = not released[fields[f]] and tonumber(fields[f + 1]) or 0
    for i = 1, reads do
      -- A read hold whose key may be at the other node can last as long as the lock.
      local left = leftOf(lock, base .. ':' .. fields[f] .. ':rwlock_timeout:' .. i) or whole
      if left > longest then longest = left end
    end
    -- No read hold lasts longer than a lock that expires.
    if whole > 0 and longest >= whole then return longest end
  end
  return longest
end
