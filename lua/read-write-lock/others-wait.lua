-- read-write-lock/others-wait: finds out whether other clients wait for either half
-- KEYS[1]  lock     hash    mode -> read or write; owner -> read holds; owner:write -> write holds
-- ARGV[1]  publish  string  PUBLISH or SPUBLISH
-- ARGV[2]  channel  string  wake-up channel of both halves
-- ARGV[3]  ours     int     own subscribers of the channel
-- Returns  1  other clients wait, or Redis does not tell, or the lock is free; nothing changed
--          0  no other client waits; nothing changed

local lock = KEYS[1]
local publish, channel, ours = ARGV[1], ARGV[2], tonumber(ARGV[3])

-- include: lib/others-wait.lua (defines others)
-- The question of a reader that has lost the lock starts nothing.
if others or redis.call('EXISTS', lock) == 0 then return 1 end
return 0
