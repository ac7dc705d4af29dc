-- lib/not-after: ends the script if the request arrives too late
-- Reads    notAfter  int  server time in epoch ms after which the script changes nothing; 0 = no limit
-- Returns  -3  too late; nothing changed

if notAfter > 0 then
  local time = redis.call('TIME')
  if time[1] * 1000 + time[2] / 1000 > notAfter then return -3 end
end
