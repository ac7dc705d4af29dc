-- lib/others-wait: whether more clients wait for a lock than its own
-- Reads    publish, channel
--          ours  how many subscribers of the channel do not count; -1 = do not ask
-- Defines  others  true if more subscribe

local others = false
if ours >= 0 then
  local ask = 'NUMSUB'
  if publish == 'SPUBLISH' then ask = 'SHARDNUMSUB' end
  local subscribers = redis.pcall('PUBSUB', ask, channel)
  -- Redis may refuse to say. Others must not starve then.
  others = subscribers.err ~= nil or subscribers[2] > ours
end
