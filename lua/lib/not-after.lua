-- lib/not-after: ends the script if the request comes too late
-- Reads    notAfter  int  epoch ms of this server after which nothing is changed; 0 = no limit

if notAfter > 0 then
  local time = redis.call('TIME')
  if time[1] * 1000 + time[2] / 1000 > notAfter then return -3 end
end
