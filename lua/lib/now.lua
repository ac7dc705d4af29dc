-- lib/now: ends the script if the request arrives too late, and reads the time
-- Reads    notAfter  int  server time in epoch ms after which the script changes nothing; 0 = no limit
-- Defines  now  epoch ms of this server
-- Returns  -3  too late; nothing changed

local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
if notAfter > 0 and now > notAfter then return -3 end
now = math.floor(now)
