-- object/inspect: reads the data of one name at one moment
-- KEYS[1]  object  any     the object with this name
-- KEYS[2]  queue   list    waiters of a fair lock
-- KEYS[3]  token   string  fencing token
-- KEYS[4]  taken   zset    permit id (16 bytes) -> epoch ms at which its lease ends
-- ARGV[1]  most    int     number of fields, waiters and permits that are read; 0 = all
-- Returns  type of the object, its PTTL, its fields and values or its value, waiters, token ('' = none), and in turn
--            the permit ids in hex and the remaining lease of each permit in ms (-1 = no expiry), and the numbers of all
--            fields, waiters and permits

local object, queue, token, taken = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local most = tonumber(ARGV[1])

-- include: lib/inspect-object.lua (defines inspect)
return inspect(object, queue, token, taken, most)
