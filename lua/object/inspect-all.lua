-- object/inspect-all: reads everything that Redis has under several names, at one moment
-- KEYS[1]  object  any     the first name
-- KEYS[2]  queue   list    waiters of a fair lock
-- KEYS[3]  token   string  fencing token
-- KEYS[4]  taken   zset    permit id in 16 bytes -> epoch ms at which its lease ends
-- ARGV[1..n]  others  the same four keys of each further name; in a cluster they have other slots of the same node
-- Returns  an array  of each name what object/inspect returns

local object, queue, token, taken = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

-- include: lib/inspect-object.lua (defines inspect)
local all = { inspect(object, queue, token, taken) }
for i = 1, #ARGV, 4 do all[#all + 1] = inspect(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]) end
return all
