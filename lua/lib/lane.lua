-- lib/lane: ends the script if this request has run, is cancelled, or the lane carries a later request
-- Reads    requests, lane, sequence
-- Defines  seen  what the lane had before: sequence:answer, or false

local seen = redis.call('HGET', requests, lane)
if seen then
  local done, answer = string.match(seen, '^(%d+):(.*)$')
  if done == sequence then return tonumber(answer) end
  if tonumber(done) > tonumber(sequence) then return -4 end
end
