-- request/cancel: prevents a request from running if it has not run yet
-- KEYS[1]  requests  hash    lane of this client -> sequence:answer
-- ARGV[1]  lane      int     lane of the request
-- ARGV[2]  sequence  int     number of the request; it increases with each request of the lane
-- Returns  1  the request had run; its effect stays
--          0  the request will never run

local requests = KEYS[1]
local lane, sequence = ARGV[1], ARGV[2]

local seen = redis.call('HGET', requests, lane)
if seen then
  local done, answer = string.match(seen, '^(%d+):(.*)$')
  if tonumber(done) > tonumber(sequence) then return 0 end
  if done == sequence and answer ~= '-4' then return 1 end
end
-- At maxmemory, Redis refuses a script whose first write needs memory. This write needs none.
local kept = redis.call('PEXPIRE', requests, '3600000')
redis.call('HSET', requests, lane, sequence .. ':-4')
if kept == 0 then redis.call('PEXPIRE', requests, '3600000') end
return 0
