-- read-write-lock/others-wait: finds out whether other clients wait for either half
-- KEYS[1]  lock     hash    mode -> read or write; only its slot matters
-- ARGV[1]  publish  string  PUBLISH or SPUBLISH
-- ARGV[2]  channel  string  wake-up channel of both halves
-- ARGV[3]  ours     int     own subscribers of the channel
-- Returns  1  other clients wait, or Redis does not tell
--          0  no other client waits

local publish, channel, ours = ARGV[1], ARGV[2], tonumber(ARGV[3])

-- include: lib/others-wait.lua (defines others)
return others and 1 or 0
