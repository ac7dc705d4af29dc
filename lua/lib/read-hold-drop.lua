-- lib/read-hold-drop: removes read holds, also while a slot migrates
-- Defines  drop  function: deletes the key of a read hold
-- A key at the other node stays until its lease ends. No other owner has the same id.

local function drop(hold)
  local dropped = redis.pcall('DEL', hold)
  if type(dropped) == 'table' and not string.find(dropped.err, 'non local key', 1, true) then redis.call('DEL', hold) end
end
