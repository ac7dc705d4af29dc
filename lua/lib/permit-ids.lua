-- lib/permit-ids: decodes the permit ids of a request
-- Reads    idsFrom  index in ARGV of the first id in hex; the ids are the last arguments
-- Defines  ids  the ids, 16 bytes each, in their order

local ids = {}
for i = idsFrom, #ARGV do
  local id = ''
  for byte in string.gmatch(ARGV[i], '%x%x') do id = id .. string.char(tonumber(byte, 16)) end
  ids[#ids + 1] = id
end
