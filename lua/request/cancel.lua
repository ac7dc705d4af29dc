-- request/cancel: prevents a request that has not run yet
-- KEYS[1]  requests  hash    lane -> sequence:answer, of this client
-- ARGV[1]  lane      int     lane of this client that carries the request
-- ARGV[2]  sequence  int     number of the request, larger than all before it in its lane
-- Returns  1  it had run; what it did stays
--          0  it never will
-- Used by  src/redis/scripts/request.ts (cancel)

local requests = KEYS[1]
local lane, sequence = ARGV[1], ARGV[2]

local seen = redis.call('HGET', requests, lane)
if seen then
  local done, answer = string.match(seen, '^(%d+):(.*)$')
  if tonumber(done) > tonumber(sequence) then return 0 end
  if done == sequence and answer ~= '-4' then return 1 end
end
-- At maxmemory Redis allows what begins with a write that needs no memory.
local kept = redis.call('PEXPIRE', requests, '3600000')
redis.call('HSET', requests, lane, sequence .. ':-4')
if kept == 0 then redis.call('PEXPIRE', requests, '3600000') end
return 0
