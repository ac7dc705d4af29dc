-- read-write-lock/renew: extends the leases of holds that their owners still have
-- KEYS[1..n]  locks  hash  mode -> read or write; owner -> read holds; owner:write -> write holds; all in one slot
-- ARGV[1]  notAfter  int  server time in epoch ms after which the script changes nothing; 0 = no limit
-- ARGV[2..n]  holds  for each lock: prefix of the keys of its read holds, owner, lease in ms, 1 = renew its write
--            holds, number of its read holds, and for each of them 1 = renew
-- Returns  an array with one integer for each lock: remaining lease of the owner in ms; 0 = it no longer holds the lock
--              an error that begins with TRYAGAIN: the other node of a migrating slot has a read hold; only the locks
--              before that one are renewed

local notAfter = tonumber(ARGV[1])

-- include: lib/read-hold-left.lua (defines leftOf)

-- include: lib/not-after.lua
local lefts = {}
local a = 2
for k = 1, #KEYS do
  local lock, base, owner, lease = KEYS[k], ARGV[a], ARGV[a + 1], tonumber(ARGV[a + 2])
  local write, reads = ARGV[a + 3], tonumber(ARGV[a + 4])
  local wrote = redis.pcall('HEXISTS', lock, owner .. ':write')
  -- The key has another type now. Report this lock as lost, and renew the others of the batch.
  local foreign = type(wrote) == 'table'
  -- Run the command again, so that the script returns any other error.
  if foreign and not string.find(wrote.err, 'WRONGTYPE', 1, true) then redis.call('HEXISTS', lock, owner) end
  local whole, left = redis.call('PTTL', lock), 0
  -- A key without expiry counts as held for the requested lease.
  if whole == -1 then whole = lease end
  if wrote == 1 then
    left = whole
    if write == '1' and left < lease then left = lease end
  end
  local counted, over = 0, {}
  if not foreign then counted = tonumber(redis.call('HGET', lock, owner) or '0') end
  for i = 1, math.min(reads, counted) do
    -- Renew only the keys of this owner: a dead reader must not stay alive through other readers.
    local hold = base .. ':' .. owner .. ':rwlock_timeout:' .. i
    local ttl = leftOf(lock, hold)
    if not ttl then return redis.error_reply('TRYAGAIN the slot is moving, and a read hold is at its other node') end
    if ARGV[a + 4 + i] == '1' then
      if ttl == -2 then over[#over + 1] = hold end
      if ttl >= 0 and ttl < lease then
        redis.call('PEXPIRE', hold, lease)
        ttl = lease
      end
    end
    if ttl > left then left = ttl end
  end
  -- An expired read hold stays held through the other holds of its owner. Without another hold it is not restored.
  if left > 0 then
    for _, hold in ipairs(over) do
      redis.call('SET', hold, '1', 'PX', lease)
      left = math.max(left, lease)
    end
  end
  if left > whole then redis.call('PEXPIRE', lock, left) end
  lefts[k] = left
  a = a + 5 + reads
end
return lefts
