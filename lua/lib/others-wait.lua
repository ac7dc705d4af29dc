-- lib/others-wait: finds out whether other clients wait for a lock
-- Reads    publish, channel
--          ours  number of subscribers of the channel that belong to this client; -1 = do not check
-- Defines  others  true if the channel has more subscribers

local others = false
if ours >= 0 then
  local ask = 'NUMSUB'
  if publish == 'SPUBLISH' then ask = 'SHARDNUMSUB' end
  local subscribers = redis.pcall('PUBSUB', ask, channel)
  -- If Redis refuses the command, assume that other clients wait: they must not starve.
  others = subscribers.err ~= nil or subscribers[2] > ours
end
