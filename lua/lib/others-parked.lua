-- lib/others-parked: finds out whether other clients are parked in the roll
-- Reads    waiters, own, station
--          ours  as in lib/others-wait
-- Changes  others  true if another client is parked

if ours >= 0 and own ~= '' and not others then
  local parked = redis.pcall('ZCARD', waiters)
  if type(parked) == 'number' then
    others = parked > 1 or (parked == 1 and not redis.pcall('ZSCORE', waiters, station))
  else
    -- The roll may be at the other node of a moving slot. Then assume that others wait. If Redis refuses it, no client
    -- of this user is parked.
    others = string.find(parked.err, 'non local key', 1, true) ~= nil
  end
end
