-- lib/permit-ids: decodes the permit ids of a request
-- Reads    idsFrom  index in ARGV of the first id in hex; the ids are the last arguments
-- Defines  ids  the ids, 16 bytes each, in their order

local ids = {}
for i = idsFrom, #ARGV do
  local id = ARGV[i]
  ids[#ids + 1] = struct.pack(
    '>I4I4I4I4',
    tonumber(string.sub(id, 1, 8), 16),
    tonumber(string.sub(id, 9, 16), 16),
    tonumber(string.sub(id, 17, 24), 16),
    tonumber(string.sub(id, 25, 32), 16)
  )
end
