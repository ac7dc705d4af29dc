-- object/inspect-all: reads what Redis has under several names, at one moment
-- KEYS[1]  object  any     the first name
-- KEYS[2]  queue   list    waiters of a fair lock
-- KEYS[3]  token   string  fencing token
-- KEYS[4]  taken   zset    permit id in 16 bytes -> epoch ms at which its lease ends
-- ARGV[1]  most    int     number of fields, waiters and permits that are read of each name; 0 = all
-- ARGV[2..n]  others  the same four keys of each further name; in a cluster they have other slots of the same node
-- Returns  an array  of each name what object/inspect returns

local object, queue, token, taken = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local most = tonumber(ARGV[1])

-- include: lib/inspect-object.lua (defines inspect)
local all = { inspect(object, queue, token, taken, most) }
for i = 2, #ARGV, 4 do all[#all + 1] = inspect(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], most) end
return all
