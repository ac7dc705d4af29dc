-- lib/lane: ends the script if the request has run or is cancelled, or the lane has run a later request
-- Reads    requests, lane, sequence
-- Defines  seen  the previous entry of the lane: sequence:answer, or false
-- Returns  -4  cancelled, or the lane has run a later request; nothing changed

local seen = redis.call('HGET', requests, lane)
if seen then
  local done, answer = string.match(seen, '^(%d+):(.*)$')
  if done == sequence then return tonumber(answer) end
  if tonumber(done) > tonumber(sequence) then return -4 end
end
