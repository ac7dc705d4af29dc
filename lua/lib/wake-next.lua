-- lib/wake-next: wakes the next parked clients, and parks the next waiter of the client that frees the lock behind them
-- Reads    waiters, tell
--          ours     own subscribers of the channel of the lock; -1 = those of other clients do not matter
--          heard    number of subscribers that got the message that the lock is free
--          most     number of clients to wake
--          station  of the waiter to park; '' = none
--          since    epoch ms since which it waits
-- Ends the script with 5, 6 or 7 if a part of that is left to the client: see the header of the script.

-- Other clients that listen, such as JVMs, run for the lock, too. As many of ours run with them.
if ours >= 0 then most = math.max(most, 1 + math.min(math.max(heard - ours, 0), 7)) end
local woken = tell('1', most)
if woken < 0 then return 7 end
if station ~= '' then
  if woken == 0 then return 5 end
  -- Redis has run a write before this one, so it does not refuse this one for its memory.
  if type(redis.pcall('ZADD', waiters, since, station)) == 'table' then
    tell('2', 1)
    return 6
  end
  redis.pcall('PEXPIRE', waiters, '60000')
end
if woken > 0 then tell('2', 1) end
